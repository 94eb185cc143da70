package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lastCapability is the highest number that the kernel knows.
func lastCapability() int {
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return unix.CAP_LAST_CAP
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return unix.CAP_LAST_CAP
	}
	return n
}

// bound gives up the capabilities that a program could ever gain. Only who has CAP_SETPCAP can and need do so.
func (s *script) bound() {
	s.layer = Privileges
	for c := range lastCapability() + 1 {
		s.add("bound capabilities", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c)).optional = true
	}
}

// unprivileged gives up all capabilities and the way to new ones, which filtering calls needs, too.
func (s *script) unprivileged() {
	s.layer = Privileges
	s.add("clear ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL).optional = true
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	s.add("give up capabilities", unix.SYS_CAPSET, at(s, header), at(s, &[2]unix.CapUserData{}))
	s.add("forgo new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
}
