package loadtest

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ownCPU returns this process's processor time in seconds.
func ownCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// readStat reads a process's entry in /proc.
func readStat(pid int) (procfs.ProcStat, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return process.Stat()
}

// treeCPU returns the processor time of a process and its children, including ended ones, in seconds.
func treeCPU(pid int) (float64, error) {
	own, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	ended := procfs.ProcStat{UTime: uint(own.CUTime), STime: uint(own.CSTime)}
	cpu := own.CPUTime() + ended.CPUTime()
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, process := range all {
		child, err := process.Stat()
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH): // it has ended
		case err != nil:
			return 0, err
		case child.PPID == pid:
			cpu += child.CPUTime()
		}
	}
	return cpu, nil
}

// readUsage returns a process's processor time and memory.
func readUsage(pid int) (u usage, err error) {
	process, err := procfs.NewProc(pid)
	if err == nil {
		u, err = usageOf(process)
	}
	if err != nil {
		return u, fmt.Errorf("read what the tracker takes: %w", err)
	}
	return u, nil
}

func usageOf(process procfs.Proc) (u usage, err error) {
	stat, err := process.Stat()
	if err != nil {
		return u, err
	}
	status, err := process.NewStatus()
	return usage{CPU: stat.CPUTime(), PeakRSS: int64(status.VmHWM), Anonymous: int64(status.RssAnon)}, err
}
