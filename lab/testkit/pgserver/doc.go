// Package pgserver runs PostgreSQL servers for tests: each in a folder of its own, reached by a socket in it.
// Servers do not sync to the disk: tests kill processes, never the machine. Benchmarks that measure commits set
// fsync to on.
package pgserver
