package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what a process may use up. Zero values bound nothing, but for core files, which are never written.
type Limits struct {
	// MemoryBytes bounds the address space, and what the control group holds.
	MemoryBytes int64
	// ReservedBytes of the address space are not counted: what the program's runtime reserves and does not use.
	ReservedBytes int64
	// ProcessorTime is that of all threads together, rounded up to seconds; the process is killed afterwards.
	ProcessorTime time.Duration
	// Processes counts processes and threads.
	Processes int
	// OpenFiles is how many files may be open at a time.
	OpenFiles int
	// FileBytes bounds the size of a file that is written.
	FileBytes int64
}

// noCore is too small for any core file; 0 would have cores piped to where the machine collects them.
const noCore = 1

// limits sets those that the kernel counts for each process. Processes are counted for each user, so they are bounded
// where the user is the process's own.
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

// atMost sets a limit, unless the machine sets a lower one already: that stays, and nobody can raise it.
func (s *script) atMost(what string, resource int, value uint64) {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err == nil {
		value = min(value, own.Max)
	}
	s.limit(what, resource, value)
}

// anyPriority lets a launcher such as chrt raise the priority of what it starts, as far as this process may.
func (s *script) anyPriority() {
	s.layer = ""
	for _, l := range []struct {
		what     string
		resource int
		most     uint64
	}{{"real-time priority", unix.RLIMIT_RTPRIO, 99}, {"priority", unix.RLIMIT_NICE, 40}} {
		var own unix.Rlimit
		if err := unix.Getrlimit(l.resource, &own); err == nil && unix.Geteuid() != 0 {
			l.most = min(l.most, own.Max)
		}
		s.limit(l.what, l.resource, l.most)
		s.calls[len(s.calls)-1].optional = true
	}
}
