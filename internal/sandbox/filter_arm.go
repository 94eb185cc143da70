package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_ARM

// Calls beyond the tables: an architecture's own, by which programs set where a thread's memory is and make code seen.
const (
	armCacheFlush = 0xf0002
	armSetTLS     = 0xf0005
)

// harmlessHere are calls that only this architecture has: those of its beginnings, and those that have a wider
// argument here than where a word has 64 bits.
var harmlessHere = []int{unix.SYS_MMAP2, unix.SYS_UGETRLIMIT, armCacheFlush, armSetTLS, unix.SYS_SIGRETURN, unix.SYS_ACCESS, unix.SYS_STAT, unix.SYS_LSTAT,
	unix.SYS_STAT64, unix.SYS_LSTAT64, unix.SYS_FSTAT64, unix.SYS_FSTATAT64, unix.SYS_FSTATFS64, unix.SYS__LLSEEK, unix.SYS_READLINK, unix.SYS_DUP2,
	unix.SYS_GETUID32, unix.SYS_GETEUID32, unix.SYS_GETGID32, unix.SYS_GETEGID32, unix.SYS_POLL, unix.SYS__NEWSELECT, unix.SYS_FUTEX_TIME64,
	unix.SYS_CLOCK_GETTIME64, unix.SYS_CLOCK_GETRES_TIME64, unix.SYS_CLOCK_NANOSLEEP_TIME64, unix.SYS_PPOLL_TIME64, unix.SYS_PSELECT6_TIME64,
	unix.SYS_RT_SIGTIMEDWAIT_TIME64}

var conditionalHere = []rule{
	{unix.SYS_OPEN, &condition{1, writing, []uint32{0}}},
	{unix.SYS_FCNTL64, &condition{1, 0, descriptorOptions}},
}

// Identities have 32 bits; the calls without a number in their names take those of 16.
const (
	setGroups = unix.SYS_SETGROUPS32
	setGroup  = unix.SYS_SETRESGID32
	setUser   = unix.SYS_SETRESUID32
)
