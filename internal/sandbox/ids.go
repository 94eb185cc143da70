package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// Identifiers that Debian's policy reserves and that no user, group or file has. They are below 65536, so that they
// exist in containers with their own users, too.
const (
	firstID = 65000
	lastID  = 65500
)

// freeID is a number that neither a user nor a group has.
func freeID() (int, error) {
	for id := firstID; id <= lastID; id++ {
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

// readable says whether another user can read all files and run the executable, if there is one, if the program is to
// be one.
func (s *Sandbox) readable(files []string, executable *os.File) error {
	if executable != nil && s.id != 0 {
		info, err := executable.Stat()
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if info.Mode()&0o005 != 0o005 {
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", executable.Fd())) // it may have been opened by such a name itself
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

// Share lets others read a file, and run it if it is a program: in a sandbox it may be another user's, who is shown
// nothing else of the folder that it is in.
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

// closed is the first folder on the way to dir that others may not enter; empty when there is none.
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

// become makes the child another user, without supplementary groups.
func (s *script) become(id int) {
	s.layer = User
	n := uintptr(id)
	s.add("give up groups", setGroups, 0, 0)
	s.add(fmt.Sprintf("become group %d", id), setGroup, n, n, n)
	s.add(fmt.Sprintf("become user %d", id), setUser, n, n, n)
}

// mapIDs gives a child in a new user namespace the identifiers that it has outside.
func (s *script) mapIDs(uid, gid int) {
	s.layer = User
	s.write("/proc/self/setgroups", "deny")
	s.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid))
	s.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid))
}
