package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxAttributeBytes bounds the value of an attribute.
const maxAttributeBytes = 256

// SetAttribute sets an extended attribute of a file. Not every file system supports them.
func SetAttribute(path, name, value string) error {
	return unix.Setxattr(path, name, []byte(value), 0)
}

// Attribute returns an attribute set by SetAttribute, or "".
func Attribute(path, name string) string {
	value := make([]byte, maxAttributeBytes)
	n, err := unix.Getxattr(path, name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// DropCache drops a file from the page cache, if supported, so that it is read from disk next.
func DropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
