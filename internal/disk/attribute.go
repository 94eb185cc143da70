package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxAttributeBytes bounds the value of an attribute that is read.
const maxAttributeBytes = 256

// SetAttribute writes something beside a file's bytes. Not every file system can.
func SetAttribute(path, name, value string) error {
	return unix.Setxattr(path, name, []byte(value), 0)
}

// Attribute reads what SetAttribute wrote; empty where there is nothing.
func Attribute(path, name string) string {
	value := make([]byte, maxAttributeBytes)
	n, err := unix.Getxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// DropCache has the system read a file from the disk next, not from its memory, where it can.
func DropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
