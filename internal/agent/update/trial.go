package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trialVariable tells a program that it is on trial: it is to join the farm, leave it again, and exit with status 0.
const trialVariable = "TILTH_ON_TRIAL"

// OnTrial reports whether this process is a program on trial.
func OnTrial() bool { return os.Getenv(trialVariable) != "" }

// ExitLater is the exit status of a program on trial that could not join the farm for a reason that is not its own.
const ExitLater = 75

const (
	// mostSaid bounds how much of what a program on trial says is kept.
	mostSaid = 4 << 10
	// pipeDelay is how long what a program on trial left behind may keep its pipes.
	pipeDelay = 5 * time.Second
)

// lastSaid keeps the last bytes that are written.
type lastSaid struct{ kept []byte }

// Write takes everything.
func (l *lastSaid) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-mostSaid):]...)
	l.kept = l.kept[max(0, len(l.kept)-mostSaid):]
	return len(p), nil
}

// line is the last line.
func (l *lastSaid) line() string {
	text := strings.TrimSpace(string(l.kept))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Try runs the program that Watch brought with the arguments of this process. The agent must have left the farm. An
// error says why it did not join; the program in use is as it was, whatever the new one did.
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
	said := &lastSaid{}
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

// intact compares the new program with what was unpacked.
func (u *Updater) intact() error {
	if got, err := digestOf(u.next()); err != nil {
		return laterError{err}
	} else if got != u.digest {
		return laterError{fmt.Errorf("somebody changed %s", u.next())}
	}
	return nil
}

// claims compares the version that a program says with the one that was signed.
func (u *Updater) claims(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Trial)
	defer cancel()
	said := &lastSaid{}
	if err := u.child(ctx, said, io.Discard, nil, []string{"--version"}); err != nil {
		return judged(fmt.Errorf("it does not run on this machine: %w", err))
	}
	if text := strings.TrimSpace(string(said.kept)); !strings.HasPrefix(text+" ", "tilth version "+version+" ") {
		return fmt.Errorf("it says that it is %.100q, not version %s", text, version)
	}
	return nil
}

// child runs the new program in a process group of its own, and ends all of the group after it.
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
	_ = kill() // mostly there is nothing left
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return nil // it exited with status 0, before what it had started
	}
	return err
}

// judged tells failures of a program's own from others: it exited by itself, and not to be tried later, or it is no
// program for this machine.
func judged(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() && exit.ExitCode() != ExitLater {
		return err
	}
	for _, own := range []error{syscall.ENOEXEC, syscall.ENOENT, syscall.EACCES} {
		if errors.Is(err, own) {
			return err
		}
	}
	return laterError{err}
}
