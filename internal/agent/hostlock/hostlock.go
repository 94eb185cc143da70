package hostlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Initial and maximum interval at which a held lock is tried again. flock(2) can block, but not with a context.
const (
	firstPoll = 200 * time.Microsecond
	maxPoll   = 4 * time.Millisecond
)

// Lock is the lock of the host. It consists of two files: every process passes the gate first, and a runner
// that waits for computations to end holds the gate, so that newcomers cannot starve it.
type Lock struct {
	gate, main string
	// device is the lock file of one of the host's devices; empty for timing on the processors.
	device string
	// notices reports long waits; nil disables reports.
	notices *notices
}

// DefaultDir returns the folder that the processes of a user share on this host.
func DefaultDir() string {
	return filepath.Join(os.TempDir(), "tilth-"+strconv.Itoa(os.Getuid()))
}

// New returns the lock in a folder and creates the folder.
func New(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("host lock: %w", err)
	}
	return &Lock{gate: filepath.Join(dir, "host.gate.lock"), main: filepath.Join(dir, "host.lock")}, nil
}

// Compute waits until nothing is timed, and prevents timing until release is called. Any number of holders
// may compute concurrently.
func (l *Lock) Compute(ctx context.Context) (release func(), err error) {
	return l.acquire(ctx, syscall.LOCK_SH)
}

// Time waits until nothing computes or is timed, and prevents both until release is called. For a lock
// returned by On, it waits until nothing is timed on the processors or on that device.
func (l *Lock) Time(ctx context.Context) (release func(), err error) {
	if l.device == "" {
		return l.acquire(ctx, syscall.LOCK_EX)
	}
	return l.timeOnDevice(ctx)
}

// On returns the lock for timing on one of the host's devices, which has its own clock: programs may compute
// meanwhile, and other devices may be timed. The device's name must be unique on the host.
func (l *Lock) On(device string) *Lock {
	own := *l
	own.device = filepath.Join(filepath.Dir(l.main), "device-"+url.PathEscape(device)+".lock")
	return &own
}

func (l *Lock) acquire(ctx context.Context, how int) (release func(), err error) {
	l.notices.enter()
	defer func() { l.notices.leave(err) }()
	return l.pass(ctx, how)
}

// timeOnDevice locks the device first, so that waiting for a device does not block the processors.
func (l *Lock) timeOnDevice(ctx context.Context) (release func(), err error) {
	l.notices.enter()
	defer func() { l.notices.leave(err) }()
	device, err := l.lockFile(ctx, l.device, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	host, err := l.pass(ctx, syscall.LOCK_SH)
	if err != nil {
		device.Close()
		return nil, err
	}
	return func() { host(); device.Close() }, nil
}

func (l *Lock) pass(ctx context.Context, how int) (release func(), err error) {
	gate, err := l.lockFile(ctx, l.gate, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	main, err := l.lockFile(ctx, l.main, how)
	if err != nil {
		return nil, err
	}
	// Closing the only descriptor releases the lock, as does the end of the process.
	return func() { main.Close() }, nil
}

func (l *Lock) lockFile(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("host lock: %w", err)
	}
	if err := l.flock(ctx, f, how); err != nil {
		f.Close()
		return nil, fmt.Errorf("host lock %s: %w", path, err)
	}
	return f, nil
}

func (l *Lock) flock(ctx context.Context, f *os.File, how int) error {
	poll, began := firstPoll, time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.gaveUp(ctx, began)
		case <-timer.C:
		}
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		l.notices.look(l)
		timer.Reset(poll)
		poll = min(2*poll, maxPoll)
	}
}
