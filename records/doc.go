// Package records defines the store interface and its rules, without any implementation: the identity of records
// (Digest, Key), validation, which record is the best (Supersedes, Bests), which records pruning keeps (PruneOptions),
// the changes of a write (Write, Op), and the export format. Start with store.go.
//
// Implementations are subpackages: bolt keeps a file or memory, postgres a database. The tests of this package verify
// that they conform. Package storesync synchronizes records between stores, and package staticsite publishes them as
// files for a web server.
package records
