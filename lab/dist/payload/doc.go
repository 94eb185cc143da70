// Package payload holds the files of an archive or package and writes them reproducibly: sorted, with a common time,
// owned by root, and independent of the machine.
package payload
