package connlimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Shares of a room.
const (
	// callBytes is the cost of a call while its request is in transit, however small: the transport keeps a goroutine
	// and buffers for each.
	callBytes = 16 << 10
	// Bytes available to unauthenticated callers, per connection, per address, and in total.
	strangerConnBytes, strangerHostBytes, strangersBytes = 4 * callBytes, 64 * callBytes, 1024 * callBytes
)

var errNoRoom = errors.New("request memory limit exceeded")

// room accounts for memory per server, per caller and per connection. Its methods may be called concurrently.
type room struct {
	perConn, perCaller, total int64
	wait                      time.Duration

	mu        sync.Mutex
	held      int64
	strangers int64
	callers   map[string]*int64
	waiting   map[string]int // waiters per caller
	freed     chan struct{}  // closed when bytes are released; nil = no waiter
}

func newRoom(total int64, wait time.Duration) *room {
	return &room{perConn: total / 8, perCaller: total / 4, total: total, wait: wait, callers: map[string]*int64{}, waiting: map[string]int{}}
}

// account is the account that bytes are taken on.
type account struct {
	// caller is an identity, or the address of unauthenticated callers; empty = no per-caller limit.
	caller   string
	stranger bool
	conn     *int64 // bytes held by the connection, guarded by the room's mutex
}

// take takes bytes, all or none, and reports whether it did.
func (r *room) take(t account, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeLocked(t, bytes)
}

func (r *room) takeLocked(t account, bytes int64) bool {
	perConn, perCaller := r.perConn, r.perCaller
	if t.stranger {
		perConn, perCaller = strangerConnBytes, strangerHostBytes
	}
	var own int64
	if held := r.callers[t.caller]; held != nil {
		own = *held
	}
	if *t.conn+bytes > perConn || t.caller != "" && own+bytes > perCaller || r.held+bytes > r.total ||
		t.stranger && r.strangers+bytes > strangersBytes {
		return false
	}
	r.add(t, bytes)
	return true
}

// add adds bytes to the account; negative values release them. r.mu must be held.
func (r *room) add(t account, bytes int64) {
	r.held += bytes
	*t.conn += bytes
	if t.stranger {
		r.strangers += bytes
	}
	if t.caller == "" {
		return
	}
	held := r.callers[t.caller]
	if held == nil {
		held = new(int64)
		r.callers[t.caller] = held
	}
	if *held += bytes; *held == 0 {
		delete(r.callers, t.caller)
	}
}

func (r *room) give(t account, bytes int64) {
	if bytes == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(t, -bytes)
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// maxWaiting bounds the waiters of one caller: each is woken by every release.
const maxWaiting = 256

// await takes bytes, and waits a while for them if necessary.
func (r *room) await(ctx context.Context, t account, bytes int64) error {
	var timer *time.Timer
	for {
		r.mu.Lock()
		if r.takeLocked(t, bytes) {
			r.mu.Unlock()
			return nil
		}
		if timer == nil && !r.addWaiter(t.caller) {
			r.mu.Unlock()
			return errNoRoom
		}
		if r.freed == nil {
			r.freed = make(chan struct{})
		}
		freed := r.freed
		r.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(r.wait)
			defer timer.Stop()
			defer r.removeWaiter(t.caller)
		}
		select {
		case <-freed:
		case <-timer.C:
			return errNoRoom
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addWaiter registers a waiter, and reports whether there may be another. r.mu must be held.
func (r *room) addWaiter(caller string) bool {
	if caller != "" && r.waiting[caller] == maxWaiting {
		return false
	}
	r.waiting[caller]++
	return true
}

func (r *room) removeWaiter(caller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[caller]--; r.waiting[caller] == 0 {
		delete(r.waiting, caller)
	}
}

// taken returns the total of bytes held.
func (r *room) taken() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}
