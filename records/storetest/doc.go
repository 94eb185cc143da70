// Package storetest holds stores to what records.Store promises, each by the same tests: look-ups, pages, writes by
// many at a time and, of those that keep what is stored, processes that are killed. Begin to read in suite.go. It
// knows no store, only the interface.
package storetest
