package connlimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Shares of a server's room.
const (
	// callBytes is what a call takes while its request is on its way, however small that is: the transport keeps a
	// goroutine and buffers for each.
	callBytes = 16 << 10
	// What callers that prove nothing may take, on a connection, from one address, and all of them.
	strangerConnBytes, strangerHostBytes, strangersBytes = 4 * callBytes, 64 * callBytes, 1024 * callBytes
)

var errNoRoom = errors.New("no room for what comes on the connection")

// room is what requests take while they come and until they are answered, counted for the whole server, for each
// caller and for each connection. Its methods may be called from many goroutines.
type room struct {
	perConn, perCaller, total int64
	wait                      time.Duration

	mu        sync.Mutex
	held      int64
	strangers int64
	callers   map[string]*int64
	waiting   map[string]int // waiters, by caller
	freed     chan struct{}  // closed when something is given back; nil while nobody waits
}

func newRoom(total int64, wait time.Duration) *room {
	return &room{perConn: total / 8, perCaller: total / 4, total: total, wait: wait, callers: map[string]*int64{}, waiting: map[string]int{}}
}

// taker is on whose account something is taken.
type taker struct {
	// caller is an identity, or an address of those that prove nothing; empty = counted for nobody.
	caller   string
	stranger bool
	conn     *int64 // what the connection holds, guarded by the room's lock
}

// take takes so many bytes, all or none.
func (r *room) take(t taker, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeLocked(t, bytes)
}

func (r *room) takeLocked(t taker, bytes int64) bool {
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

// add counts bytes, negative ones when they are given back. The caller holds the lock.
func (r *room) add(t taker, bytes int64) {
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

func (r *room) give(t taker, bytes int64) {
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

// mostWaiting are those of one caller that wait for room: each hears of all that is given back.
const mostWaiting = 256

// await takes bytes when there is room for them, for which it waits a while.
func (r *room) await(ctx context.Context, t taker, bytes int64) error {
	var timer *time.Timer
	for {
		r.mu.Lock()
		if r.takeLocked(t, bytes) {
			r.mu.Unlock()
			return nil
		}
		if timer == nil && !r.waits(t.caller) {
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
			defer r.waitsNoMore(t.caller)
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

// waits counts one more that waits, if there may be one. The caller holds the lock.
func (r *room) waits(caller string) bool {
	if caller != "" && r.waiting[caller] == mostWaiting {
		return false
	}
	r.waiting[caller]++
	return true
}

func (r *room) waitsNoMore(caller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[caller]--; r.waiting[caller] == 0 {
		delete(r.waiting, caller)
	}
}

// taken is what all hold.
func (r *room) taken() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}
