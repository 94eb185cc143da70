package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxAtOnce bounds the concurrent writers of a file whose temporary names the next writer knows.
const maxAtOnce = 16

// temporary creates a temporary file that will replace the one at path. It is locked while its process lives,
// and has a predictable name, so that the next writer of path removes files of killed processes.
func temporary(path string) (f *os.File, err error) {
	dir, base := filepath.Split(path)
	for n := 0; n < maxAtOnce; n++ {
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

// claim creates and locks a file. It returns nil without an error if the file exists or existed briefly.
func claim(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// If the file system does not support locks, other processes never treat the file as abandoned.
	switch err := lock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !in(name, f):
		return nil, f.Close() // another process considered it abandoned before it was locked
	}
	return f, nil
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// in reports whether a file still has its name.
func in(name string, f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(own, there)
}

// abandoned removes an unlocked file of this user. It returns false if the file must stay.
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
