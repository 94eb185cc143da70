package hostlock

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

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
