// Package payload holds the files of an archive or a package, and writes them so that the same files always give the
// same bytes: sorted, with one time for all, owned by root, and with no trace of the machine.
package payload
