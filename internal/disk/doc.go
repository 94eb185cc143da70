// Package disk asks file systems for free space and attributes, syncs folders so that names in them survive a power
// cut, and has locks.
package disk
