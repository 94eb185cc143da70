package target

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPU bounds processor numbers, to detect typing errors.
const maxCPU = 1 << 16

var errCPUs = errors.New("want numbers and ranges, such as 0,2-5")

// ParseCPUs parses numbers and ranges, in order. An empty text is an empty list.
func ParseCPUs(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		low, err := strconv.Atoi(from)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(to)
		}
		if err != nil || low < 0 || high < low || high > maxCPU {
			return nil, errCPUs
		}
		for cpu := low; cpu <= high; cpu++ {
			list = append(list, cpu)
		}
		if len(list) > maxCPU {
			return nil, fmt.Errorf("more than %d processors", maxCPU)
		}
	}
	return list, nil
}

// FormatCPUs formats a list of logical processors in ascending order, as Linux does: 0, 1, 2, 3 and 8 become 0-3,8.
func FormatCPUs(list []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for k := 0; k < len(sorted); {
		last := k
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(sorted[k])
		if last > k {
			part += "-" + strconv.Itoa(sorted[last])
		}
		parts, k = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

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
