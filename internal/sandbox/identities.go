//go:build !arm

package sandbox

import "golang.org/x/sys/unix"

// Calls that change the identity of a process.
const (
	setGroups = unix.SYS_SETGROUPS
	setGroup  = unix.SYS_SETRESGID
	setUser   = unix.SYS_SETRESUID
)
