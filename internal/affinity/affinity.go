package affinity

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/cpulist"
)

// Do calls f on a thread that runs on the processors alone, as do processes that f starts. An empty list is any
// processor. The error is f's, or says that the thread may not run there.
func Do(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	// While a thread is locked, the Go runtime starts no others from it, which would be confined, too.
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
		return fmt.Errorf("running on the processors %s: %w", cpulist.Format(cpus), err)
	}
	err = f()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return err
}
