package sandbox

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// settings lists files of /proc by which root changes the machine, even without capabilities. Containers
// mount them read-only; a fresh /proc would not.
var settings = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// procFlags are the usual mount flags of /proc, which contains no programs or devices.
const procFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountsProc reports whether programs get a /proc of their namespace. Programs that see the machine's files
// need it, because the machine's /proc lacks the ids of their threads.
func (s *Sandbox) mountsProc() bool { return s.ownProc && s.has[Processes] && !s.has[Files] }

// newProc mounts /proc for the child's namespace, with read-only settings.
func (s *script) newProc() {
	s.layer = Processes
	s.ownMounts()
	s.mountProc("/proc")
	for _, path := range settings {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // not every kernel has all of them
		}
		s.mount("mount "+path, path, path, "", unix.MS_BIND, "")
		s.mount("protect "+path, "", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|procFlags, "")
	}
}

// ownMounts makes the child's mounts private.
func (s *script) ownMounts() {
	s.mount("keep mounts to itself", "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// mountProc mounts /proc for the child's namespace.
func (s *script) mountProc(dir string) *call {
	return s.mount("mount "+dir, "proc", dir, "proc", procFlags, "")
}
