// Package disk tells about file systems, and has them keep the names of folders.
package disk
