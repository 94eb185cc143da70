package execute

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bounds of the process that need not be asked for.
const mostOpenFiles = 256

// confine bounds what the process may use, and gives up what running a package does not need.
func confine(l Limits) error {
	for _, limit := range []struct {
		what     string
		resource int
		most     int64
	}{
		{"core files", unix.RLIMIT_CORE, 0}, {"open files", unix.RLIMIT_NOFILE, mostOpenFiles},
		{"files", unix.RLIMIT_FSIZE, l.OutputBytes}, {"memory", unix.RLIMIT_AS, l.MemoryBytes},
	} {
		if limit.most == 0 && limit.resource != unix.RLIMIT_CORE {
			continue
		}
		bound := &unix.Rlimit{Cur: uint64(limit.most), Max: uint64(limit.most)}
		if err := unix.Setrlimit(limit.resource, bound); err != nil {
			return fmt.Errorf("bounding %s: %w", limit.what, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forgoing privileges: %w", err)
	}
	return nil
}
