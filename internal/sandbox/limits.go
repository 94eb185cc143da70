package sandbox

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits restricts the resources of a process. Zero values mean no limit, except for core files, which are
// never written.
type Limits struct {
	// MemoryBytes limits the address space and the control group.
	MemoryBytes int64
	// ReservedBytes is address space that does not count: the program's runtime reserves it without using it.
	ReservedBytes int64
	// ProcessorTime limits the CPU time of all threads, rounded up to seconds. The process is then killed.
	ProcessorTime time.Duration
	// Processes limits processes and threads.
	Processes int
	// OpenFiles limits the number of open files.
	OpenFiles int
	// FileBytes limits the size of a written file.
	FileBytes int64
}

// noCore is too small for any core file. A limit of 0 would still pipe cores to the machine's collector.
const noCore = 1

// limits sets per-process limits. The kernel counts processes per user, so they are limited only if the
// process has its own user.
func (s *script) limits(l Limits, ownUser bool) {
	s.layer = ""
	s.atMost("core files", unix.RLIMIT_CORE, noCore)
	if l.MemoryBytes > 0 {
		s.atMost("memory", unix.RLIMIT_AS, uint64(l.MemoryBytes+l.ReservedBytes))
	}
	if l.ProcessorTime > 0 {
		s.atMost("processor time", unix.RLIMIT_CPU, uint64((l.ProcessorTime+time.Second-1)/time.Second))
	}
	if l.Processes > 0 && ownUser {
		s.atMost("processes", unix.RLIMIT_NPROC, uint64(l.Processes))
	}
	if l.OpenFiles > 0 {
		s.atMost("open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles))
	}
	if l.FileBytes > 0 {
		s.atMost("file size", unix.RLIMIT_FSIZE, uint64(l.FileBytes))
	}
}

// atMost sets a limit, unless the machine has a lower one, which stays and cannot be raised.
func (s *script) atMost(what string, resource int, value uint64) {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err == nil {
		value = min(value, own.Max)
	}
	s.limit(what, resource, value)
}

// anyPriority lets a launcher such as chrt raise the priority of its program, as far as this process may.
func (s *script) anyPriority() {
	s.layer = ""
	for _, l := range []struct {
		what     string
		resource int
		max      uint64
	}{{"real-time priority", unix.RLIMIT_RTPRIO, 99}, {"priority", unix.RLIMIT_NICE, 40}} {
		var own unix.Rlimit
		if err := unix.Getrlimit(l.resource, &own); err == nil && unix.Geteuid() != 0 {
			l.max = min(l.max, own.Max)
		}
		s.limit(l.what, l.resource, l.max)
		s.calls[len(s.calls)-1].optional = true
	}
}

// MachineMemory returns the size of the main memory, or 0 (no limit) if unknown.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// OwnMemory returns the memory available to this process and its children, which control groups (version 2)
// limit in a container.
func OwnMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return MachineMemory()
	}
	return ownMemory(MachineMemory(), "/sys/fs/cgroup", string(groups))
}

// ownMemory returns the lowest limit of the groups and their ancestors.
func ownMemory(machine int64, root, groups string) int64 {
	smallest := machine
	for line := range strings.Lines(groups) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			text, err := os.ReadFile(path.Join(root, dir, "memory.max"))
			limit, notNumber := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && notNumber == nil && (smallest == 0 || limit < smallest) {
				smallest = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return smallest
}
