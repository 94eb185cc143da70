package sandbox

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is a classic BPF program that runs at each system call. It is an allowlist: any other call,
// including calls of future kernels, fails with EPERM.

// condition restricts an argument.
type condition struct {
	argument int
	// mask selects the bits of the argument that must equal one of values; 0 means all bits.
	mask   uint32
	values []uint32
}

// rule allows a call if its condition holds.
type rule struct {
	number    int
	condition *condition
}

const (
	threadOnly = unix.CLONE_THREAD | unix.CLONE_VM
	writing    = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
	setVMA     = 0x53564d41 // PR_SET_VMA, by which the C library names its memory
)

// harmless lists calls that multi-threaded computations need, allowed with any arguments.
var harmless = []int{
	unix.SYS_FUTEX, unix.SYS_CLOCK_GETTIME, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MEMBARRIER, unix.SYS_MSYNC, unix.SYS_MINCORE,
	unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_GETCWD, unix.SYS_FSTATFS,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRUSAGE, unix.SYS_TIMES,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_GETCPU, unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETTIMEOFDAY,
	unix.SYS_CLOCK_GETRES, unix.SYS_SETRLIMIT, unix.SYS_SECCOMP, unix.SYS_PPOLL, unix.SYS_PSELECT6,
}

// launching lists further calls of launchers and emulators, which set priorities and forward the calls of a
// foreign program.
var launching = []int{
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_GETATTR,
	unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY,
	unix.SYS_IOPRIO_GET, unix.SYS_IOPRIO_SET, unix.SYS_GET_MEMPOLICY, unix.SYS_SET_MEMPOLICY, unix.SYS_MBIND, unix.SYS_GETDENTS64, unix.SYS_STATFS,
	unix.SYS_SETITIMER, unix.SYS_GETITIMER, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_PIPE2, unix.SYS_EVENTFD2,
	unix.SYS_EXECVE,
}

// waiting lists the calls by which Go programs wait.
var waiting = []int{unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2}

// rules returns the rules for a command. alone is set if the process is the only one in its namespace.
func (c Command) rules(alone bool) []rule {
	numbers := append([]int{unix.SYS_EXECVEAT}, harmless...) // the call that starts the program
	if len(c.Launcher) > 0 {
		numbers = append(numbers, launching...)
	}
	if c.Events {
		numbers = append(numbers, waiting...)
	}
	self := 0
	if alone {
		self = 1
	}
	return allowed(numbers, append([]uint32{unix.PR_SET_DUMPABLE, unix.PR_SET_NO_NEW_PRIVS}, naming...), self)
}

// naming lists the allowed options of prctl.
var naming = []uint32{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE, unix.PR_SET_THP_DISABLE, unix.PR_SVE_GET_VL, unix.PR_SVE_SET_VL, setVMA}

// descriptorOptions lists the allowed options of fcntl.
var descriptorOptions = []uint32{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL}

// allowed returns rules for unconditional calls, including those of this architecture, and for calls with restricted
// arguments. self is the pid of the process, the only one that it may signal; 0 before it is known.
func allowed(numbers []int, options []uint32, self int) []rule {
	list := make([]rule, 0, len(numbers)+len(harmlessHere)+16)
	for _, n := range slices.Concat(numbers, harmlessHere) {
		list = append(list, rule{number: n})
	}
	zero := []uint32{0}
	list = append(list, conditionalHere...)
	list = append(list,
		rule{unix.SYS_OPENAT, &condition{2, writing, zero}},
		rule{unix.SYS_CLONE, &condition{0, threadOnly, []uint32{threadOnly}}},
		rule{unix.SYS_PRLIMIT64, &condition{0, 0, zero}},
		rule{unix.SYS_IOCTL, &condition{1, 0, []uint32{unix.TCGETS}}},
		rule{unix.SYS_FCNTL, &condition{1, 0, descriptorOptions}},
		rule{unix.SYS_PRCTL, &condition{0, 0, options}})
	if self > 0 {
		own := []uint32{uint32(self)}
		list = append(list, rule{unix.SYS_KILL, &condition{0, 0, own}}, rule{unix.SYS_TGKILL, &condition{0, 0, own}})
	}
	return list
}

const (
	loadNumber    = 0 // offsets in the kernel's struct seccomp_data
	loadArch      = 4
	loadArguments = 16
	returnErrno   = unix.SECCOMP_RET_ERRNO
	// x32Calls is the bit of calls of the x32 ABI, which have different meanings.
	x32Calls = 0x40000000
)

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func jump(code uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | code, Jt: yes, Jf: no, K: k}
}

// assemble turns rules into a program.
func assemble(list []rule) []unix.SockFilter {
	const load, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_RET | unix.BPF_K
	refuse := statement(give, returnErrno|uint32(unix.EPERM))
	program := []unix.SockFilter{
		statement(load, loadArch), jump(unix.BPF_JEQ, auditArch, 1, 0), refuse,
		statement(load, loadNumber), jump(unix.BPF_JGE, x32Calls, 0, 1), refuse,
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), statement(give, returnErrno|uint32(unix.ENOSYS)), // its arguments are in memory; the C library then falls back to clone
	}
	for _, r := range list {
		body := []unix.SockFilter{statement(give, unix.SECCOMP_RET_ALLOW)}
		if r.condition != nil {
			body = r.condition.program()
		}
		program = append(program, jump(unix.BPF_JEQ, uint32(r.number), 0, uint8(len(body))))
		program = append(program, body...)
	}
	return append(program, refuse)
}

// program tests the lower half of an argument, which is all that the kernel reads of these arguments.
func (c *condition) program() []unix.SockFilter {
	list := []unix.SockFilter{statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, loadArguments+8*uint32(c.argument))}
	if c.mask != 0 {
		list = append(list, statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.mask))
	}
	for _, v := range c.values {
		list = append(list, jump(unix.BPF_JEQ, v, 0, 1), statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW))
	}
	return append(list, statement(unix.BPF_RET|unix.BPF_K, returnErrno|uint32(unix.EPERM)))
}

// filter restricts calls from here on. It requires no_new_privs. It also opts out of speculation mitigations
// for filtered programs, so that a kernel runs as fast as outside a sandbox.
func (s *script) filter(list []rule) {
	s.layer = Calls
	program := assemble(list)
	s.kept = append(s.kept, program)
	header := &unix.SockFprog{Len: uint16(len(program)), Filter: unsafe.SliceData(program)}
	s.add("filter calls", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, at(s, header))
}
