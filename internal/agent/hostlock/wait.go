package hostlock

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// firstNotice is how long the lock is waited for in silence: batches are built and measured in less. Further notices
// come after twice as long each.
const firstNotice = 5 * time.Second

// notices tells of long waits, once for all that wait for the same lock.
type notices struct {
	log   *slog.Logger
	first time.Duration
	mu    sync.Mutex
	// waiting counts those that wait. The next notice is due when none of them has got the lock for so long since
	// then.
	waiting int
	since   time.Time
	due     time.Duration
}

// Announce makes the lock tell a logger when it is waited for because another process has it, and which. It is called
// before any other method.
func (l *Lock) Announce(log *slog.Logger) { l.notices = &notices{log: log, first: firstNotice} }

// Announced is the lock in DefaultDir, with Announce.
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

// look writes a notice when one is due.
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

// gaveUp is the error of a wait that ctx ended.
func (l *Lock) gaveUp(ctx context.Context, began time.Time) error {
	cause := context.Cause(ctx)
	if holders := l.Holders(); len(holders) > 0 {
		return fmt.Errorf("waited %v for the machine, which %s holds (wait for it, or end it): %w", time.Since(began).Round(time.Second), join(holders), cause)
	}
	return fmt.Errorf("waiting for the machine: %w", cause)
}
