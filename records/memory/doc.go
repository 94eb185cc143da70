// Package memory is a bounded in-memory store; nothing survives the process. It suits tests, and farms whose records
// are not needed afterwards. Start with store.go; package records defines what rows mean.
//
// Rows stay encoded as they were committed and are never modified, so look-ups take references under the lock and
// decode them without it.
package memory
