package hostlock

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Holder is another process that holds the lock.
type Holder struct {
	PID int
	// Command is the program name and its first argument, or "" if unknown.
	Command string
}

// String formats the holder for messages.
func (h Holder) String() string {
	if h.Command == "" {
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Command)
}

// Holders returns the other processes that currently compute or time. For a lock returned by On, it returns
// those that block timing on that device. It returns none if the kernel does not list locks like Linux.
func (l *Lock) Holders() []Holder {
	pids := lockers(l.main, l.device != "")
	if l.device != "" {
		pids = append(pids, lockers(l.device, true)...)
	}
	slices.Sort(pids)
	own := os.Getpid()
	var list []Holder
	for _, pid := range slices.Compact(pids) {
		if pid != own {
			list = append(list, Holder{pid, command(pid)})
		}
	}
	return list
}

// lockers returns the processes that hold an flock(2) on a file, or only exclusive holders, from /proc/locks:
//
//	1: FLOCK  ADVISORY  WRITE 4242 fe:00:9978882 0 EOF
func lockers(path string, alone bool) (pids []int) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) { // waiting locks have an arrow before FLOCK
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 && (!alone || fields[3] == "WRITE") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func command(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	words[0] = filepath.Base(words[0])
	return strings.ToValidUTF8(strings.Join(words[:min(2, len(words))], " "), "?")
}
