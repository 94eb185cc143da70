package target

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunOn calls f on a thread confined to the given processors, as are processes that f starts. An empty list
// means any processor. It returns the error of f, or an error if the thread may not run there.
func RunOn(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	// While a thread is locked, the Go runtime starts no other threads from it, which would inherit the affinity.
	runtime.LockOSThread()
	var before, wanted unix.CPUSet
	for _, n := range cpus {
		wanted.Set(n)
	}
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &wanted)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("running on the processors %s: %w", FormatCPUs(cpus), err)
	}
	err = f()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
	}
	return err
}
