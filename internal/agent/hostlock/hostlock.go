package hostlock

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

	"github.com/tilth-dev/tilth/internal/humanize"
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
	waits  *waits
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
	w := &waits{log: slog.New(slog.DiscardHandler), first: firstNotice, after: blockedAfter, limit: maxWait}
	return &Lock{gate: filepath.Join(dir, "host.gate.lock"), main: filepath.Join(dir, "host.lock"), waits: w}, nil
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

// JoinFarm makes this process one of a farm, identified by its tracker's address, until leave is called. Agents of one
// farm wait for each other as part of their work, and do not block each other.
func (l *Lock) JoinFarm(tracker string) (leave func(), err error) {
	sum := sha256.Sum256([]byte(tracker))
	farm := filepath.Join(filepath.Dir(l.main), fmt.Sprintf("farm-%x.lock", sum[:8]))
	member, err := l.lockFile(context.Background(), farm, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	l.waits.mu.Lock()
	defer l.waits.mu.Unlock()
	l.waits.farm = farm
	return func() { member.Close() }, nil
}

func (l *Lock) acquire(ctx context.Context, how int) (release func(), err error) {
	l.waits.enter()
	defer func() { l.waits.leave(err) }()
	return l.pass(ctx, how)
}

// timeOnDevice locks the device first, so that waiting for a device does not block the processors.
func (l *Lock) timeOnDevice(ctx context.Context) (release func(), err error) {
	l.waits.enter()
	defer func() { l.waits.leave(err) }()
	device, err := l.lockFile(ctx, l.device, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	sign(device)
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
	sign(main)
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
		if err := l.waits.look(l); err != nil {
			return err
		}
		timer.Reset(poll)
		poll = min(2*poll, maxPoll)
	}
}

// Holder is another process that holds the lock.
type Holder struct {
	PID int `json:"pid"`
	// Command is the program name and its first argument, or "" if unknown.
	Command string `json:"command"`
	// Since is when it acquired the lock, or the start of this process's wait if that is unknown.
	Since time.Time `json:"since"`
}

// String formats the holder for messages.
func (h Holder) String() string {
	text := fmt.Sprintf("process %d", h.PID)
	if h.Command != "" {
		text += " (" + h.Command + ")"
	}
	if !h.Since.IsZero() {
		text += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	return text
}

// sign records in a lock file that this process has just acquired it. Others only read that for messages.
func sign(f *os.File) {
	_, _ = f.WriteAt(fmt.Appendf(nil, "%10d %19d\n", os.Getpid(), time.Now().UnixNano()), 0)
}

// signed returns when a process acquired a lock file, or zero if another one signed it since.
func signed(path string, pid int) time.Time {
	var signer int
	var nanos int64
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	if _, err := fmt.Fscanf(io.LimitReader(f, 31), "%d %d\n", &signer, &nanos); err != nil || signer != pid {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Holders returns the other processes that currently compute or time. For a lock returned by On, it returns
// those that block timing on that device. It returns none if the kernel does not list locks like Linux.
func (l *Lock) Holders() []Holder {
	list := HoldersOf(l.main, l.device != "")
	if l.device != "" {
		list = append(list, HoldersOf(l.device, true)...)
	}
	slices.SortFunc(list, func(a, b Holder) int { return a.PID - b.PID })
	return slices.CompactFunc(list, func(a, b Holder) bool { return a.PID == b.PID })
}

// HoldersOf returns the other processes that hold an flock(2) on a file, or only an exclusive one.
func HoldersOf(path string, alone bool) (list []Holder) {
	pids := lockers(path, alone)
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		if pid != os.Getpid() {
			list = append(list, Holder{pid, command(pid), signed(path, pid)})
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
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	words[0] = filepath.Base(words[0])
	text := strings.Join(words[:min(2, len(words))], " ")
	return strings.ToValidUTF8(text[:min(len(text), 100)], "?")
}

const (
	// firstNotice is the wait after which the first notice is logged; most batches are faster. Each further notice
	// comes after twice the time.
	firstNotice = 5 * time.Second
	// blockedAfter is the wait after which another process is considered to block this one, and lookEvery the interval
	// at which waiters look who that is.
	blockedAfter, lookEvery = 500 * time.Millisecond, 500 * time.Millisecond
	// maxWait is the default of Limit.
	maxWait = 10 * time.Minute
)

// waits describes what all waiters of a lock in this process wait for.
type waits struct {
	log                 *slog.Logger
	first, after, limit time.Duration
	expired             func(error)
	// farm is the file that the agents of this process's farm hold a lock on, or empty.
	farm string

	mu sync.Mutex
	// waiting counts the waiters. None of them has acquired the lock since the time since.
	waiting int
	since   time.Time
	// due is the wait at which the next notice is logged.
	due    time.Duration
	looked time.Time
	// holders are the other processes that block this one now, and last those that did so last.
	holders, last []Holder
	// total is the time for which this process was blocked before.
	total time.Duration
}

// Announce makes the lock log which process it waits for. It must be called before any other method.
func (l *Lock) Announce(log *slog.Logger) { l.waits.log = log }

// Limit changes the time, 10 min by default, after which waiting for other processes fails. expired, if not nil, is
// called with the error. It must be called before any other method.
func (l *Lock) Limit(limit time.Duration, expired func(error)) {
	l.waits.limit, l.waits.expired = limit, expired
}

// Announced returns the lock in DefaultDir after Announce.
func Announced(log *slog.Logger) (*Lock, error) {
	lock, err := New(DefaultDir())
	if err == nil {
		lock.Announce(log)
	}
	return lock, err
}

// ErrInUse is returned if other processes hold the lock for too long.
var ErrInUse = errors.New("the machine is in use")

// Refused returns an error that names the processes that hold the lock now, or nil.
func (l *Lock) Refused() error {
	if holders := l.Holders(); len(holders) > 0 {
		return fmt.Errorf("%w by %s: let it end, or end it", ErrInUse, Join(holders))
	}
	return nil
}

// Blocked returns the other processes for which this one has been waiting for a while, or none.
func (l *Lock) Blocked() []Holder {
	l.waits.mu.Lock()
	defer l.waits.mu.Unlock()
	return l.waits.holders
}

// Waited returns how long other processes blocked this one, and those that did so last.
func (l *Lock) Waited() (time.Duration, []Holder) {
	l.waits.mu.Lock()
	defer l.waits.mu.Unlock()
	return l.waits.total, l.waits.last
}

func (w *waits) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting++; w.waiting == 1 {
		w.since, w.due = time.Now(), w.first
	}
}

func (w *waits) leave(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
	if err != nil && w.waiting > 0 {
		return
	}
	w.unblock(time.Now())
}

// unblock ends the wait for other processes, if there is one.
func (w *waits) unblock(now time.Time) {
	if len(w.holders) > 0 {
		w.total += now.Sub(w.since)
	}
	w.since, w.due, w.holders = now, w.first, nil
}

// look finds out who holds the lock, from time to time, and logs a notice if one is due. It returns an error if the
// wait exceeds its limit.
func (w *waits) look(l *Lock) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	waited := now.Sub(w.since)
	if waited < w.after || now.Sub(w.looked) < min(lookEvery, w.after) {
		return nil
	}
	w.looked = now
	farm := lockers(w.farm, false)
	holders := slices.DeleteFunc(l.Holders(), func(h Holder) bool { return slices.Contains(farm, h.PID) })
	if len(holders) == 0 {
		w.unblock(now)
		return nil
	}
	w.holders = holders
	for k := range w.holders {
		if w.holders[k].Since.IsZero() {
			w.holders[k].Since = w.since // at the latest
		}
	}
	w.last = w.holders
	if waited >= w.limit {
		err := fmt.Errorf("%w by %s, after waiting for %v: let it end, or end it", ErrInUse, Join(w.holders), waited.Round(time.Second))
		if w.expired != nil {
			w.expired(err)
		}
		return err
	}
	if waited >= w.due {
		w.due = max(2*w.due, w.first)
		w.log.Warn("waiting for the machine: another process computes or times something on it; let it end, or end it", "held_by", Join(w.holders))
	}
	return nil
}

// Join lists the first few holders for messages.
func Join(holders []Holder) string {
	const shown = 3
	text := humanize.Join(holders[:min(len(holders), shown)], ", ", Holder.String)
	if more := len(holders) - shown; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// gaveUp returns the error of a wait that ctx ended.
func (l *Lock) gaveUp(ctx context.Context, began time.Time) error {
	cause := context.Cause(ctx)
	if holders := l.Holders(); len(holders) > 0 {
		return fmt.Errorf("waited %v for the machine, held by %s (wait for it, or end it): %w", time.Since(began).Round(time.Second), Join(holders), cause)
	}
	return fmt.Errorf("waiting for the machine: %w", cause)
}
