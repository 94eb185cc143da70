// Package storetest holds stores to what records.Store promises.
package storetest
