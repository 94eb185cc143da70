// Package disk asks file systems for free space and attributes, and syncs folders so that names in them survive a
// power cut.
package disk
