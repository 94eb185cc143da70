package sandbox

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// settings are files of /proc by which root changes the machine, even without capabilities. Containers have them
// read-only; a /proc that is mounted anew would not.
var settings = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// procFlags are those of any mount of /proc: nothing in it is a program or a device.
const procFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountsProc says that programs get a /proc of their own namespace. They need one where they see the machine's files:
// the machine's /proc does not have the numbers by which they know their threads.
func (s *Sandbox) mountsProc() bool { return s.ownProc && s.has[Processes] && !s.has[Files] }

// newProc mounts /proc for the child's own namespace, in which nobody changes settings.
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

// ownMounts lets nobody else see what the child mounts.
func (s *script) ownMounts() {
	s.mount("keep mounts to itself", "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// mountProc shows the processes of the child's namespace.
func (s *script) mountProc(dir string) *call {
	return s.mount("mount "+dir, "proc", dir, "proc", procFlags, "")
}
