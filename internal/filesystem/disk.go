package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeFolder creates a folder and missing parents so that they survive a power failure. It also syncs an
// existing folder, whose creator may have been killed before doing so.
func MakeFolder(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	above := filepath.Dir(path)
	err := os.Mkdir(path, mode)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err := MakeFolder(above, mode); err != nil {
			return err
		}
		err = os.Mkdir(path, mode)
	}
	if info, statErr := os.Stat(path); err != nil && (statErr != nil || !info.IsDir()) {
		return err
	}
	return SyncFolder(above)
}

// SyncFolder syncs the names in a folder. It ignores folders that it may not read.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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

// FreeBytes returns the space available to unprivileged users on the file system of a path.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // 32 bits wide on 32-bit systems
}
