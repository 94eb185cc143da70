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
