package connlimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Shares of a budget.
const (
	// callBytes is the cost of a call while its request is in transit, however small: the transport keeps a goroutine
	// and buffers for each.
	callBytes = 16 << 10
	// unauthenticatedConnBytes to unauthenticatedBytes are the limits per connection, per address and in total.
	unauthenticatedConnBytes, unauthenticatedHostBytes, unauthenticatedBytes = 4 * callBytes, 64 * callBytes, 1024 * callBytes
)

var errOverBudget = errors.New("request memory limit exceeded")

// memoryBudget accounts for memory per server, per caller and per connection. Its methods may be called concurrently.
type memoryBudget struct {
	perConn, perCaller, total int64
	wait                      time.Duration

	mu              sync.Mutex
	held            int64
	unauthenticated int64
	callers         map[string]*int64
	waiting         map[string]int // waiters per caller
	freed           chan struct{}  // closed when bytes are released; nil = no waiter
}

func newMemoryBudget(total int64, wait time.Duration) *memoryBudget {
	return &memoryBudget{perConn: total / 8, perCaller: total / 4, total: total, wait: wait, callers: map[string]*int64{}, waiting: map[string]int{}}
}

// account identifies whom bytes are charged to.
type account struct {
	// caller is an identity, or the address of unauthenticated callers; empty = no per-caller limit.
	caller          string
	unauthenticated bool
	conn            *int64 // bytes held by the connection, guarded by the budget's mutex
}

// reserve reserves bytes, all or none, and reports whether it did.
func (b *memoryBudget) reserve(t account, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserveLocked(t, bytes)
}

func (b *memoryBudget) reserveLocked(t account, bytes int64) bool {
	perConn, perCaller := b.perConn, b.perCaller
	if t.unauthenticated {
		perConn, perCaller = unauthenticatedConnBytes, unauthenticatedHostBytes
	}
	var own int64
	if held := b.callers[t.caller]; held != nil {
		own = *held
	}
	if *t.conn+bytes > perConn || t.caller != "" && own+bytes > perCaller || b.held+bytes > b.total ||
		t.unauthenticated && b.unauthenticated+bytes > unauthenticatedBytes {
		return false
	}
	b.add(t, bytes)
	return true
}

// add adds bytes to the account; negative values release them. b.mu must be held.
func (b *memoryBudget) add(t account, bytes int64) {
	b.held += bytes
	*t.conn += bytes
	if t.unauthenticated {
		b.unauthenticated += bytes
	}
	if t.caller == "" {
		return
	}
	held := b.callers[t.caller]
	if held == nil {
		held = new(int64)
		b.callers[t.caller] = held
	}
	if *held += bytes; *held == 0 {
		delete(b.callers, t.caller)
	}
}

func (b *memoryBudget) release(t account, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(t, -bytes)
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// maxWaiting bounds the waiters of one caller: each is woken by every release.
const maxWaiting = 256

// await reserves bytes, and waits a while for them if necessary.
func (b *memoryBudget) await(ctx context.Context, t account, bytes int64) error {
	var timer *time.Timer
	for {
		b.mu.Lock()
		if b.reserveLocked(t, bytes) {
			b.mu.Unlock()
			return nil
		}
		if timer == nil && !b.addWaiter(t.caller) {
			b.mu.Unlock()
			return errOverBudget
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(b.wait)
			defer timer.Stop()
			defer b.removeWaiter(t.caller)
		}
		select {
		case <-freed:
		case <-timer.C:
			return errOverBudget
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addWaiter registers a waiter, and reports whether there may be another. b.mu must be held.
func (b *memoryBudget) addWaiter(caller string) bool {
	if caller != "" && b.waiting[caller] == maxWaiting {
		return false
	}
	b.waiting[caller]++
	return true
}

func (b *memoryBudget) removeWaiter(caller string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[caller]--; b.waiting[caller] == 0 {
		delete(b.waiting, caller)
	}
}

// reserved returns the total of bytes held.
func (b *memoryBudget) reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
