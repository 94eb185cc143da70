package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked is returned when another process, or another part of this one, has a lock.
var ErrLocked = errors.New("locked by another process")

// Lock is had by one holder at a time, and lost when its process ends, however it does.
type Lock struct{ file *os.File }

// TryLock takes the lock that a file stands for, which is made. ErrLocked when somebody else has it.
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

// tryLock locks a file. It got nothing, and there is no error, when the file was removed by its last holder meanwhile.
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

// Unlock gives the lock up, and removes its file.
func (l *Lock) Unlock() error {
	err := os.Remove(l.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.file.Close())
}
