// Package pgserver runs PostgreSQL servers for tests: each in a folder of its own, reached by a socket in it, with
// fsync on as everywhere else.
package pgserver
