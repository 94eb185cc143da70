package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stepError is a failed call of a script in the child.
type stepError struct {
	step  call
	cause syscall.Errno
}

func (e *stepError) Error() string { return e.step.what + ": " + e.cause.Error() }

func (e *stepError) Unwrap() error { return e.cause }

// forkError means that no child could be created.
type forkError struct{ cause syscall.Errno }

func (e *forkError) Error() string { return "making a process: " + e.cause.Error() }

func (e *forkError) Unwrap() error { return e.cause }

// forkArgs holds the arguments of fork. It lives on the heap, so that it does not move during the child's few
// instructions.
type forkArgs struct {
	calls []call
	// failure receives the index and errno of a failed call.
	failure  [8]byte
	report   uintptr
	clone    uintptr
	cloneArg [2]uintptr
	// all blocks all signals while parent and child share memory. before is the previous mask.
	all, before uint64
}

// run starts a child with clone flags that executes the script, whose last call executes a program or exits.
// If the kernel refuses a call, it returns a *stepError or *forkError, and the child is gone.
func (s *script) run(flags uintptr, cgroup int) (*os.Process, error) {
	if s.err != nil {
		return nil, s.err
	}
	report, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer report.Close()
	kept, err := unix.FcntlInt(write.Fd(), unix.F_DUPFD_CLOEXEC, firstKept)
	if err = errors.Join(err, write.Close()); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	flags |= unix.CLONE_VM | unix.CLONE_VFORK
	b := &forkArgs{calls: s.calls, report: uintptr(kept), all: ^uint64(0), clone: unix.SYS_CLONE, cloneArg: [2]uintptr{flags | uintptr(unix.SIGCHLD)}}
	if cgroup >= 0 {
		args := &cloneArgs{flags: uint64(flags) | unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD), cgroup: uint64(cgroup)}
		b.clone, b.cloneArg = unix.SYS_CLONE3, [2]uintptr{at(s, args), unsafe.Sizeof(*args)}
	}
	runtime.LockOSThread()
	syscall.ForkLock.Lock() // the child must not inherit a file that is open for writing
	pid, errno := fork(b)
	syscall.ForkLock.Unlock()
	runtime.UnlockOSThread()
	runtime.KeepAlive(s)
	closing := unix.Close(kept)
	if errno != 0 {
		return nil, &forkError{errno}
	}
	p, err := os.FindProcess(int(pid))
	if err = errors.Join(err, closing); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return p, s.outcome(p, report)
}

// outcome waits until the program has started, which closes the pipe, or a call has failed.
func (s *script) outcome(p *os.Process, report io.Reader) error {
	var failure [8]byte
	if n, _ := io.ReadFull(report, failure[:]); n < len(failure) {
		return nil
	}
	_, _ = p.Wait() // it exits right after it has reported
	step := s.calls[binary.NativeEndian.Uint32(failure[:4])]
	return &stepError{step, syscall.Errno(binary.NativeEndian.Uint32(failure[4:]))}
}

// cloneArgs is the kernel's struct clone_args.
type cloneArgs struct {
	flags      uint64
	_          [3]uint64 // where to store ids
	exitSignal uint64
	_          [5]uint64 // stack, thread-local storage, requested ids
	cgroup     uint64
}

// vfork makes the system call that creates a child, and returns twice, first in the child. Both share the
// stack, so its caller must not return before the child is gone.
func vfork(number, a0, a1 uintptr) (pid, errno uintptr)

// fork creates a child and executes the calls in it. The child borrows this process's memory, and this thread
// waits until the program has started, because copying the page tables of a process with a gigabyte of memory
// would dominate the time. Neither the scheduler, the collector nor a signal handler may run in the child: it
// uses raw system calls, does not grow the stack, and blocks signals.
//
//go:nosplit
//go:norace
//go:noinline
func fork(b *forkArgs) (uintptr, syscall.Errno) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&b.all)), uintptr(unsafe.Pointer(&b.before)), 8, 0, 0)
	pid, errno := vfork(b.clone, b.cloneArg[0], b.cloneArg[1])
	if errno != 0 || pid != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&b.before)), 0, 8, 0, 0)
		return pid, syscall.Errno(errno)
	}
	carryOut(b)
	return 0, 0
}

// carryOut makes the calls and does not return.
//
//go:nosplit
//go:norace
//go:noinline
func carryOut(b *forkArgs) {
	var last uintptr
	for k := 0; k < len(b.calls); k++ {
		c := &b.calls[k]
		if c.chained {
			c.args[0] = last
		}
		result, _, errno := syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if errno != 0 && !c.optional && (errno != syscall.ENOSYS || !c.replaceable) {
			*(*uint32)(unsafe.Pointer(&b.failure[0])), *(*uint32)(unsafe.Pointer(&b.failure[4])) = uint32(k), uint32(errno)
			_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, b.report, uintptr(unsafe.Pointer(&b.failure)), 8, 0, 0, 0)
			break
		}
		last = result
	}
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, failedStart, 0, 0, 0, 0, 0)
	}
}

// failedStart is the exit status of a child whose script failed.
const failedStart = 125

// Seal restricts the current Go program before it loads untrusted code. From then on, the process cannot
// execute programs, dump memory or signal other processes, and the filter of Start applies, in every mode. A
// kernel without filters is accepted; Open reports that.
func Seal() error {
	runtime.LockOSThread() // privileges are per thread until the filter covers all of them
	defer runtime.UnlockOSThread()
	if err := errors.Join(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return fmt.Errorf("sandbox: sealing the process: %w", err)
	}
	program := assemble(allowed(slices.Concat(harmless, waiting), naming, os.Getpid()))
	header := &unix.SockFprog{Len: uint16(len(program)), Filter: unsafe.SliceData(program)}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(header)))
	if errno == 0 && thread != 0 {
		return fmt.Errorf("sandbox: sealing the process: thread %d has filters of its own", thread)
	}
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EINVAL {
		return fmt.Errorf("sandbox: sealing the process: %w", errno)
	}
	return nil
}
