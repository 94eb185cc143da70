// Package memory is the store that keeps nothing: all of it is in memory, bounded, and gone with the process. It is
// for farms whose records nobody needs afterwards, and for tests. Begin to read in store.go. What the rows mean is for
// package records to say.
//
// Rows stay encoded, as they were handed in, and are never changed, so look-ups take references under the lock and
// decode them without it.
package memory
