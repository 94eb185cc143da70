package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FreeBytes is how much the file system of a path can take in from users who are not root.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // it has 32 bits where pointers have
}
