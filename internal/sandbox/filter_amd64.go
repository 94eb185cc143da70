package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// harmlessHere lists harmless calls that only this architecture has.
var harmlessHere = []int{unix.SYS_MMAP, unix.SYS_GETRLIMIT, unix.SYS_ARCH_PRCTL, unix.SYS_ACCESS, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_READLINK, unix.SYS_DUP2,
	unix.SYS_TIME, unix.SYS_POLL, unix.SYS_SELECT}

var conditionalHere = []rule{{unix.SYS_OPEN, &condition{1, writing, []uint32{0}}}}
