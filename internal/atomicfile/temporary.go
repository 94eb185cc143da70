package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mostAtOnce bounds how many may write one file at once under names of their own that the next writer knows.
const mostAtOnce = 16

// temporary makes a file to be written in the place of the one at path. It is locked while its process lives, under a
// name that the next writer of path knows, so that what killed ones left is removed then.
func temporary(path string) (f *os.File, err error) {
	dir, base := filepath.Split(path)
	for n := 0; n < mostAtOnce; n++ {
		name := fmt.Sprintf("%s.%s.%d.part", dir, base, n)
		for abandoned(name) && f == nil {
			if f, err = claim(name); err != nil {
				return nil, err
			}
		}
	}
	if f == nil {
		return os.CreateTemp(filepath.Dir(path), "."+base+".*.part")
	}
	return f, nil
}

// claim makes a file and locks it; nil without an error when there is one, or was for a moment.
func claim(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// Where the file system knows no locks, nobody takes the file for one that was left.
	switch err := lock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !in(name, f):
		return nil, f.Close() // another one took it for that in the moment before it was locked
	}
	return f, nil
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// in says whether a file is the one of a name still.
func in(name string, f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(own, there)
}

// abandoned removes a file of this user that nobody has locked. False when there is one that is to stay.
func abandoned(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return false
	}
	if err := lock(f); err != nil {
		return false
	}
	return !in(name, f) || os.Remove(name) == nil
}
