//go:build !arm

package sandbox

import "golang.org/x/sys/unix"

// Calls by which a process gives up who it is.
const (
	setGroups = unix.SYS_SETGROUPS
	setGroup  = unix.SYS_SETRESGID
	setUser   = unix.SYS_SETRESUID
)
