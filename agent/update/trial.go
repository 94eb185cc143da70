package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// trialVariable tells a program that it is on trial: it is to join the farm, leave it again, and exit with status 0.
const trialVariable = "TILTH_ON_TRIAL"

// OnTrial reports whether this process is a program on trial.
func OnTrial() bool { return os.Getenv(trialVariable) != "" }

// mostSaid bounds how much of what a program on trial says is kept.
const mostSaid = 4 << 10

// lastSaid keeps the last bytes that are written.
type lastSaid struct{ kept []byte }

// Write takes everything.
func (l *lastSaid) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
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
	if err := u.claims(ctx, version); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, u.cfg.Trial)
	defer cancel()
	said := &lastSaid{}
	c := exec.CommandContext(limited, u.next(), args...)
	c.Env = append(os.Environ(), trialVariable+"=1")
	c.Stderr = said
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return fmt.Errorf("it did not join the farm within %s: %s", u.cfg.Trial, said.line())
	case err != nil:
		return fmt.Errorf("it did not join the farm: %w: %s", err, said.line())
	}
	return nil
}

// claims compares the version that a program says with the one that was signed.
func (u *Updater) claims(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, u.cfg.Trial)
	defer cancel()
	said, err := exec.CommandContext(ctx, u.next(), "--version").Output()
	if err != nil {
		return fmt.Errorf("it does not run on this machine: %w", err)
	}
	if text := strings.TrimSpace(string(said)); !strings.HasPrefix(text+" ", "tilth version "+version+" ") {
		return fmt.Errorf("it says that it is %.100q, not version %s", text, version)
	}
	return nil
}

// Replace puts the new program into the place of the old one, which is kept beside it, and goes on as the new one. It
// returns only when that fails.
func (u *Updater) Replace(args []string) error {
	if err := os.Remove(u.old()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(u.cfg.Program, u.old()); err != nil {
		return fmt.Errorf("keeping the program before: %w", err)
	}
	if err := os.Rename(u.next(), u.cfg.Program); err != nil {
		return fmt.Errorf("replacing the program: %w", err)
	}
	_ = os.Remove(u.refused()) // it is of no account any more, or is not there
	if err := syncFolder(filepath.Dir(u.cfg.Program)); err != nil {
		return err
	}
	return fmt.Errorf("executing %s: %w", u.cfg.Program, syscall.Exec(u.cfg.Program, append([]string{u.cfg.Program}, args...), os.Environ()))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
