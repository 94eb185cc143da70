// Package filesystem writes files atomically, reads files again after a change, queries free space and attributes of
// file systems, syncs folders so that names survive a power failure, and provides lock files.
package filesystem
