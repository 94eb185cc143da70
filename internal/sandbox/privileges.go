package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lastCapability returns the highest capability number of the kernel.
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

// bound clears the capability bounding set, which requires CAP_SETPCAP.
func (s *script) bound() {
	s.layer = Privileges
	for c := range lastCapability() + 1 {
		s.add("bound capabilities", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c)).optional = true
	}
}

// unprivileged drops all capabilities and sets no_new_privs, which filtering requires, too.
func (s *script) unprivileged() {
	s.layer = Privileges
	s.add("clear ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL).optional = true
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	s.add("give up capabilities", unix.SYS_CAPSET, at(s, header), at(s, &[2]unix.CapUserData{}))
	s.add("forgo new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
}
