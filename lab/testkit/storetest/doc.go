// Package storetest is the conformance suite for implementations of records.Store: look-ups, pages, concurrent writes
// and, for stores that persist, killed processes. It uses only the interface. Start with suite.go.
package storetest
