package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of times in /proc. It is the same on every Linux (USER_HZ).
const clockTick = 0.01

// ownCPU returns this process's processor time in seconds.
func ownCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// stat is a part of /proc/PID/stat (proc_pid_stat(5)). Times are in seconds and cover the process itself and its
// ended children.
type stat struct {
	name               string
	parent             int
	cpu, cpuOfChildren float64
}

// readStat reads /proc/PID/stat.
func readStat(pid int) (s stat, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	// The format is PID (NAME) STATE PARENT ..., and NAME may contain any character. Times are the 12th to 15th field
	// after it.
	before, after := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if before < 0 || after < before {
		return s, fmt.Errorf("%s has no name", path)
	}
	s.name = string(text[before+1 : after])
	fields := strings.Fields(string(text[after+1:]))
	if len(fields) < 15 {
		return s, fmt.Errorf("%s has %d fields", path, len(fields))
	}
	if s.parent, err = strconv.Atoi(fields[1]); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	for i, into := range []*float64{&s.cpu, &s.cpu, &s.cpuOfChildren, &s.cpuOfChildren} {
		ticks, err := strconv.ParseUint(fields[11+i], 10, 64)
		if err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
		*into += float64(ticks) * clockTick
	}
	return s, nil
}

// treeCPU returns the processor time of a process and its children, including ended ones, in seconds.
func treeCPU(pid int) (float64, error) {
	own, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	cpu := own.cpu + own.cpuOfChildren
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		s, err := readStat(child)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH): // it has ended
		case err != nil:
			return 0, err
		case s.parent == pid:
			cpu += s.cpu
		}
	}
	return cpu, nil
}

// readUsage reads a process's usage from /proc (proc_pid_status(5)).
func readUsage(pid int) (u usage, err error) {
	s, err := readStat(pid)
	if err != nil {
		return u, fmt.Errorf("read what the tracker takes: %w", err)
	}
	u.CPU = s.cpu
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
