package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Ids that Debian's policy reserves, so that no user, group or file has them. They are below 65536, so that
// they also exist in containers with user namespaces.
const (
	firstID = 65000
	lastID  = 65500
)

// freeID returns a random id that neither a user nor a group has. The kernel counts processes per user on the whole
// machine, and the programs of another sandbox must not use up the limit of this one's.
func freeID() (int, error) {
	for _, k := range rand.Perm(lastID - firstID + 1) {
		id := firstID + k
		text := strconv.Itoa(id)
		var noUser user.UnknownUserIdError
		var noGroup user.UnknownGroupIdError
		_, userErr := user.LookupId(text)
		_, groupErr := user.LookupGroupId(text)
		if errors.As(userErr, &noUser) && errors.As(groupErr, &noGroup) {
			return id, nil
		}
	}
	return 0, fmt.Errorf("all of users and groups %d to %d are taken", firstID, lastID)
}

// readable returns an error if another user cannot read all files and run the executable, if any.
func (s *Sandbox) readable(files []string, executable *os.File) error {
	if executable != nil && s.id != 0 {
		info, err := executable.Stat()
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if info.Mode()&0o005 != 0o005 {
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", executable.Fd())) // it may itself have been opened by such a name
			if err != nil {
				return fmt.Errorf("sandbox: %w", err)
			}
			return fmt.Errorf("sandbox: user %d cannot run %s: allow others to (chmod o+rx)", s.id, path)
		}
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if s.id != 0 && info.Mode()&0o004 == 0 {
			return fmt.Errorf("sandbox: user %d cannot read %s: allow others to (chmod o+r)", s.id, path)
		}
	}
	return nil
}

// Share makes a file readable, and executable if it is a program, for other users. In a sandbox another user
// may access it, but nothing else in its folder.
func Share(path string, program bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	mode := info.Mode().Perm() | 0o044
	if program {
		mode |= 0o011
	}
	if mode == info.Mode().Perm() {
		return nil
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// closed returns the first folder on the path to dir that other users may not enter, or "".
func closed(dir string) string {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// become changes the child to another user without supplementary groups.
func (s *script) become(id int) {
	s.layer = User
	n := uintptr(id)
	s.add("give up groups", setGroups, 0, 0)
	s.add(fmt.Sprintf("become group %d", id), setGroup, n, n, n)
	s.add(fmt.Sprintf("become user %d", id), setUser, n, n, n)
}

// mapIDs maps the outside ids in the child's new user namespace.
func (s *script) mapIDs(uid, gid int) {
	s.layer = User
	s.write("/proc/self/setgroups", "deny")
	s.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid))
	s.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid))
}

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
