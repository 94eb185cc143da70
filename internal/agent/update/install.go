package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// trialVariable is set for a program on trial, which must join the farm, leave it, and exit with status 0.
const trialVariable = "TILTH_ON_TRIAL"

// OnTrial reports whether this process is a program on trial.
func OnTrial() bool { return os.Getenv(trialVariable) != "" }

// ExitLater is the exit status of a program on trial that could not join the farm for an external reason.
const ExitLater = 75

const (
	// maxTail bounds the output kept from a program on trial.
	maxTail = 4 << 10
	// pipeDelay is how long leftover processes of a trial may hold its pipes.
	pipeDelay = 5 * time.Second
)

// tailBuffer keeps the last bytes written.
type tailBuffer struct{ kept []byte }

// Write implements io.Writer. It never fails.
func (l *tailBuffer) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-maxTail):]...)
	l.kept = l.kept[max(0, len(l.kept)-maxTail):]
	return len(p), nil
}

// line returns the last line.
func (l *tailBuffer) line() string {
	text := strings.TrimSpace(string(l.kept))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Try runs the program that Watch downloaded with the arguments of this process. The agent must have left the
// farm. It returns why the program could not join. The running program is unchanged in any case.
func (u *Updater) Try(ctx context.Context, version string, args []string) error {
	u.lastTrial = time.Now()
	if err := u.intact(); err != nil {
		return err
	}
	if err := u.claims(ctx, version); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, u.cfg.Trial)
	defer cancel()
	said := &tailBuffer{}
	err := u.child(limited, io.Discard, said, append(os.Environ(), trialVariable+"=1"), args)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return laterError{fmt.Errorf("it did not join the farm within %s: %s", u.cfg.Trial, said.line())}
	case err != nil:
		return judged(fmt.Errorf("it did not join the farm: %w: %s", err, said.line()))
	}
	return nil
}

// intact verifies the digest of the new program.
func (u *Updater) intact() error {
	if got, err := digestOf(u.next()); err != nil {
		return laterError{err}
	} else if got != u.digest {
		return laterError{fmt.Errorf("%s was changed by another program", u.next())}
	}
	return nil
}

// claims verifies that the program reports the signed version.
func (u *Updater) claims(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Trial)
	defer cancel()
	said := &tailBuffer{}
	if err := u.child(ctx, said, io.Discard, nil, []string{"--version"}); err != nil {
		return judged(fmt.Errorf("it does not run on this machine: %w", err))
	}
	if text := strings.TrimSpace(string(said.kept)); !strings.HasPrefix(text+" ", "tilth version "+version+" ") {
		return fmt.Errorf("it reports version %.100q, not %s", text, version)
	}
	return nil
}

// child runs the new program in its own process group, and kills the group afterwards.
func (u *Updater) child(ctx context.Context, stdout, stderr io.Writer, env, args []string) error {
	c := exec.CommandContext(ctx, u.next(), args...)
	c.Env, c.Stdout, c.Stderr = env, stdout, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	kill := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel, c.WaitDelay = kill, pipeDelay
	if err := c.Start(); err != nil {
		return err
	}
	err := c.Wait()
	_ = kill() // usually nothing is left
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return nil // it exited with status 0, but left processes behind
	}
	return err
}

// judged separates failures of the program itself from others: it exited by itself with a final status, or
// cannot run on this machine.
func judged(err error) error {
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Exited() && exit.ExitCode() != ExitLater {
		return err
	}
	for _, own := range []error{syscall.ENOEXEC, syscall.ENOENT, syscall.EACCES} {
		if errors.Is(err, own) {
			return err
		}
	}
	return laterError{err}
}

// Replace installs the new program and keeps the old one beside it. After an error the old program is in
// place, unchanged.
func (u *Updater) Replace() error {
	if err := u.replace(); err != nil {
		return laterError{err}
	}
	if err := filesystem.SyncFolder(filepath.Dir(u.cfg.Program)); err != nil {
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
