package update

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Replace installs the new program and keeps the old one beside it. After an error the old program is in
// place, unchanged.
func (u *Updater) Replace() error {
	if err := u.replace(); err != nil {
		return laterError{err}
	}
	if err := syncFolder(filepath.Dir(u.cfg.Program)); err != nil {
		u.cfg.Logger.Warn("replacement not synced; a power failure may restore the previous program", "error", err)
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
	_ = os.Remove(u.refused()) // it is obsolete or missing
	return nil
}

// keep links the running program under a second name, or copies it if links are not possible.
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

// Exec executes the program that Replace installed. It returns only on failure.
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

// lock prevents other runners of the same program from replacing it. It returns false if one of them holds the lock.
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

// unlock releases the lock if it is held.
func (u *Updater) unlock() {
	if u.locked != nil {
		u.locked.Close()
		u.locked = nil
	}
}
