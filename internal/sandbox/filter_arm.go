package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_ARM

// Private calls of the architecture, which set thread-local storage and flush the instruction cache.
const (
	armCacheFlush = 0xf0002
	armSetTLS     = 0xf0005
)

// harmlessHere lists harmless calls that only this architecture has: legacy calls, and variants with a wider
// argument than on 64-bit systems.
var harmlessHere = []int{unix.SYS_MMAP2, unix.SYS_UGETRLIMIT, armCacheFlush, armSetTLS, unix.SYS_SIGRETURN, unix.SYS_ACCESS, unix.SYS_STAT, unix.SYS_LSTAT,
	unix.SYS_STAT64, unix.SYS_LSTAT64, unix.SYS_FSTAT64, unix.SYS_FSTATAT64, unix.SYS_FSTATFS64, unix.SYS__LLSEEK, unix.SYS_READLINK, unix.SYS_DUP2,
	unix.SYS_GETUID32, unix.SYS_GETEUID32, unix.SYS_GETGID32, unix.SYS_GETEGID32, unix.SYS_POLL, unix.SYS__NEWSELECT, unix.SYS_FUTEX_TIME64,
	unix.SYS_CLOCK_GETTIME64, unix.SYS_CLOCK_GETRES_TIME64, unix.SYS_CLOCK_NANOSLEEP_TIME64, unix.SYS_PPOLL_TIME64, unix.SYS_PSELECT6_TIME64,
	unix.SYS_RT_SIGTIMEDWAIT_TIME64}

var conditionalHere = []rule{
	{unix.SYS_OPEN, &condition{1, writing, []uint32{0}}},
	{unix.SYS_FCNTL64, &condition{1, 0, descriptorOptions}},
}

// The variants with 32-bit identities; those without a suffix take 16 bits.
const (
	setGroups = unix.SYS_SETGROUPS32
	setGroup  = unix.SYS_SETRESGID32
	setUser   = unix.SYS_SETRESUID32
)
