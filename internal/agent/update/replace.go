package update

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Replace puts the new program into the place of the old one, which is kept beside it. After an error the old one is
// in its place, as it was.
func (u *Updater) Replace() error {
	if err := u.replace(); err != nil {
		return laterError{err}
	}
	if err := syncFolder(filepath.Dir(u.cfg.Program)); err != nil {
		u.cfg.Logger.Warn("the program before may be back after a power cut", "error", err)
	}
	return nil
}

func (u *Updater) replace() error {
	if err := u.intact(); err != nil {
		return err
	}
	if there, err := digestOf(u.cfg.Program); err == nil && there == u.digest {
		return os.Remove(u.next()) // another runner of this program was first
	}
	if err := u.keep(); err != nil {
		return fmt.Errorf("keeping the program before: %w", err)
	}
	if err := os.Rename(u.next(), u.cfg.Program); err != nil {
		return fmt.Errorf("replacing the program: %w", err)
	}
	_ = os.Remove(u.refused()) // it is of no account any more, or is not there
	return nil
}

// keep gives the program in use a second name, or copies it where a file has only one name, or only its owner may give
// it another.
func (u *Updater) keep() (err error) {
	if err := os.Remove(u.old()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(u.cfg.Program, u.old()) == nil {
		return nil
	}
	from, err := os.Open(u.cfg.Program)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := create(u.old(), 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return to.Sync()
}

// Exec goes on as the program that Replace put into place. It returns only when that fails.
func (u *Updater) Exec(args []string) error {
	err := syscall.Exec(u.cfg.Program, append([]string{u.cfg.Program}, args...), os.Environ())
	return fmt.Errorf("executing %s: %w", u.cfg.Program, err)
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lock keeps other runners of the same program from replacing it meanwhile. False = one of them is at it.
func (u *Updater) lock() (bool, error) {
	f, err := os.OpenFile(u.cfg.Program+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		u.locked = f
		return true, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return false, fmt.Errorf("locking %s.lock: %w", u.cfg.Program, err)
}

// unlock gives up the lock; it may be given up already.
func (u *Updater) unlock() {
	if u.locked != nil {
		u.locked.Close()
		u.locked = nil
	}
}
