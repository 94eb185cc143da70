package simulate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc, which is this on every Linux (USER_HZ).
const clockTick = 0.01

// ownCPU is the processor time that this process took since it began, in seconds.
func ownCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// readUsage reads what a process took from /proc (proc_pid_stat(5), proc_pid_status(5)).
func readUsage(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("read what the tracker takes: %w", err)
	}
	// The name, in parentheses, may hold anything; user and system time are the 12th and 13th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, at := range []int{11, 12} {
		if at >= len(fields) {
			return u, fmt.Errorf("read what the tracker takes: /proc/%d/stat has %d fields", pid, len(fields))
		}
		ticks, err := strconv.ParseUint(fields[at], 10, 64)
		if err != nil {
			return u, fmt.Errorf("read what the tracker takes: %w", err)
		}
		u.CPU += float64(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("read what the tracker takes: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmHWM": &u.PeakRSS, "VmRSS": &u.RSS, "RssAnon": &u.Anonymous}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return u, fmt.Errorf("read what the tracker takes: %s: %w", name, err)
		}
		*into = kilobytes << 10
	}
	return u, nil
}
