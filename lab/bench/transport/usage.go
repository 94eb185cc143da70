package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what a server's process took since it began. CPU is its processor time in seconds.
type usage struct {
	CPU float64 `json:"cpu"`
	// Collections are those that nobody asked for.
	Collections  uint64 `json:"collections"`
	PeakRSSBytes int64  `json:"peak_rss_bytes"`
	Goroutines   int    `json:"goroutines"`
	StackBytes   uint64 `json:"stack_bytes"`
	// Objects are those on the heap after a collection, which is made for that once the time is taken.
	Objects uint64 `json:"objects"`
}

// ownCPU is the processor time that this process took since it began, in seconds.
func ownCPU() (float64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), nil
}

func ownUsage() (u usage, err error) {
	if u.CPU, err = ownCPU(); err != nil {
		return u, err
	}
	if u.PeakRSSBytes, err = peakRSS(); err != nil {
		return u, err
	}
	before := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(before)
	u.Collections, u.StackBytes = before[0].Value.Uint64(), before[1].Value.Uint64()
	u.Goroutines = runtime.NumGoroutine()
	runtime.GC()
	after := []metrics.Sample{{Name: "/gc/heap/objects:objects"}}
	metrics.Read(after)
	u.Objects = after[0].Value.Uint64()
	return u, nil
}

// peakRSS is the most memory that this process had resident, in bytes. What getrusage says may be its parent's.
func peakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the peak of memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(kilobytes), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the peak of memory: %w", err)
	}
	return n << 10, nil
}
