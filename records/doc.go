// Package records has the interface of the store and its rules, and links none: what a record is and what it is called
// (Digest, Key), which are valid, which of them is the best (Supersedes, Bests), which stay (PruneOptions), what a
// write may change (Write, Op), and the text of an export. Begin to read in store.go.
//
// A store is a package below: bolt keeps a file, postgres a database, memory keeps nothing. storetest holds them to
// the interface. exchange brings records from one to another, and static keeps them as files that a web server serves.
package records
