package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
