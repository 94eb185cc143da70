package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FreeBytes returns the space available to unprivileged users on the file system of a path.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // 32 bits wide on 32-bit systems
}
