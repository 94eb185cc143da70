package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked is returned if another process, or another part of this one, holds a lock.
var ErrLocked = errors.New("locked by another process")

// Lock is an exclusive lock, released when its process ends.
type Lock struct{ file *os.File }

// TryLock acquires the lock of a file, which it creates. It returns ErrLocked if the lock is held.
func TryLock(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		got, err := tryLock(f)
		if got {
			return &Lock{f}, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// tryLock locks a file. It returns false without an error if the last holder removed the file meanwhile.
func tryLock(f *os.File) (got bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, ErrLocked
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, there), err
}

// Unlock releases the lock and removes its file.
func (l *Lock) Unlock() error {
	err := os.Remove(l.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.file.Close())
}
