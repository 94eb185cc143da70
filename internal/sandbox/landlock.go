package sandbox

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock ABI versions of the features used here; see the kernel's Documentation/userspace-api/landlock.rst.
const (
	landlockRefer    = 2
	landlockTruncate = 3
	landlockTCP      = 4
	landlockDevices  = 5
	landlockScopes   = 6
)

const (
	readFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readAll   = readFiles | unix.LANDLOCK_ACCESS_FS_READ_DIR
)

// landlockVersion returns the kernel's ABI version, or 0.
func landlockVersion() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(version), nil
}

// handled returns the access rights that a version can restrict.
func handled(version int) *unix.LandlockRulesetAttr {
	attr := &unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	if version >= landlockRefer {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= landlockTruncate {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= landlockTCP {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= landlockDevices {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= landlockScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// landlockSize is the size of the attributes common to all versions above.
const landlockSize = unsafe.Offsetof(unix.LandlockRulesetAttr{}.Scoped) + unsafe.Sizeof(unix.LandlockRulesetAttr{}.Scoped)

// landlock restricts the child to reading libraries and files, if it cannot have its own root.
func (s *script) landlock(version int, added, files []string) error {
	attr := handled(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), landlockSize, 0)
	if errno != 0 {
		return fmt.Errorf("sandbox: making rules for files: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, path := range slices.Concat(libraries, added) {
		if err := allow(int(fd), path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for _, path := range files {
		if err := allow(int(fd), path); err != nil {
			return err
		}
	}
	s.layer = Files
	s.add("restrict files", unix.SYS_LANDLOCK_RESTRICT_SELF, s.keep(fd), 0)
	return nil
}

// allow lets a ruleset read a file or the content of a folder.
func allow(ruleset int, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: readFiles, Parent_fd: int32(fd)}
	if info.IsDir() {
		rule.Allowed_access = readAll
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("sandbox: a rule for %s: %w", path, errno)
	}
	return nil
}
