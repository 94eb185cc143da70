package hostlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// Holder is another process that holds the lock.
type Holder struct {
	PID int
	// Command is the program name and its first argument, or "" if unknown.
	Command string
}

// String formats the holder for messages.
func (h Holder) String() string {
	if h.Command == "" {
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Command)
}

// Holders returns the other processes that currently compute or time. For a lock returned by On, it returns
// those that block timing on that device. It returns none if the kernel does not list locks like Linux.
func (l *Lock) Holders() []Holder {
	pids := lockers(l.main, l.device != "")
	if l.device != "" {
		pids = append(pids, lockers(l.device, true)...)
	}
	slices.Sort(pids)
	own := os.Getpid()
	var list []Holder
	for _, pid := range slices.Compact(pids) {
		if pid != own {
			list = append(list, Holder{pid, command(pid)})
		}
	}
	return list
}

// lockers returns the processes that hold an flock(2) on a file, or only exclusive holders, from /proc/locks:
//
//	1: FLOCK  ADVISORY  WRITE 4242 fe:00:9978882 0 EOF
func lockers(path string, alone bool) (pids []int) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) { // waiting locks have an arrow before FLOCK
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 && (!alone || fields[3] == "WRITE") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func command(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	words[0] = filepath.Base(words[0])
	return strings.ToValidUTF8(strings.Join(words[:min(2, len(words))], " "), "?")
}

// firstNotice is the wait after which the first notice is logged; most batches are faster. Each further
// notice comes after twice the time.
const firstNotice = 5 * time.Second

// notices logs long waits, once for all waiters of a lock.
type notices struct {
	log   *slog.Logger
	first time.Duration
	mu    sync.Mutex
	// waiting counts the waiters. The next notice is due once none of them has acquired the lock for that long.
	waiting int
	since   time.Time
	due     time.Duration
}

// Announce makes the lock log which process it waits for. It must be called before any other method.
func (l *Lock) Announce(log *slog.Logger) { l.notices = &notices{log: log, first: firstNotice} }

// Announced returns the lock in DefaultDir after Announce.
func Announced(log *slog.Logger) (*Lock, error) {
	lock, err := New(DefaultDir())
	if err == nil {
		lock.Announce(log)
	}
	return lock, err
}

func (n *notices) enter() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting++; n.waiting == 1 {
		n.since, n.due = time.Now(), n.first
	}
}

func (n *notices) leave(err error) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting--; err == nil {
		n.since, n.due = time.Now(), n.first
	}
}

// look logs a notice if one is due.
func (n *notices) look(l *Lock) {
	if n == nil || !n.isDue() {
		return
	}
	if holders := l.Holders(); len(holders) > 0 {
		n.log.Warn("waiting for the machine: another process computes or times something on it; let it end, or end it", "held_by", join(holders))
	}
}

func (n *notices) isDue() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.since) < n.due {
		return false
	}
	n.due = max(2*n.due, n.first)
	return true
}

func join(holders []Holder) string {
	names := make([]string, len(holders))
	for k, h := range holders {
		names[k] = h.String()
	}
	return strings.Join(names, ", ")
}

// gaveUp returns the error of a wait that ctx ended.
func (l *Lock) gaveUp(ctx context.Context, began time.Time) error {
	cause := context.Cause(ctx)
	if holders := l.Holders(); len(holders) > 0 {
		return fmt.Errorf("waited %v for the machine, which %s holds (wait for it, or end it): %w", time.Since(began).Round(time.Second), join(holders), cause)
	}
	return fmt.Errorf("waiting for the machine: %w", cause)
}
