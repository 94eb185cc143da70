// Package storesync synchronizes records between two stores. Start with Sync.
//
// No side keeps track of what it sent or received; the contents alone decide. Groups whose key digests agree are
// skipped. For other groups, one side sends its keys and the other answers which it lacks. An interrupted exchange
// therefore resumes by starting over, and records of any age, including imported ones, are found. Records travel in
// batches that are stored atomically.
package storesync
