package connlimit

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
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

// answer accounts for the memory of a call's answer: at first an estimate of making it, then the size of the messages
// that the peer has not read.
//
// The transport buffers each message whole until the peer reads it. Without this limit, a peer that calls and never
// reads would make the server buffer answers without bound.
type answer struct {
	guard   *Guard
	budget  *memoryBudget
	account account
	unread  *unread
	max     int64 // estimate of making the answer

	mu       sync.Mutex
	held     int64 // bytes reserved in the budget
	buffered int64 // part of held that belongs to messages buffered by the transport
	over     bool  // the answer is complete
}

// begin reserves the estimate, and waits a while for it if necessary.
func (a *answer) begin(ctx context.Context) error {
	if a == nil || a.max == 0 {
		return nil
	}
	limit := min(a.max, a.budget.perConn)
	if err := a.budget.await(ctx, a.account, limit); err != nil {
		return a.overBudget(ctx)
	}
	a.held = limit
	return nil
}

// end releases all bytes but those of messages that the transport still buffers.
func (a *answer) end() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.budget.release(a.account, a.held-a.buffered)
	a.held = a.buffered
}

// pack returns a message that is to be sent in place of the given one, and is accounted for until the transport
// releases it. It waits a while for any bytes beyond those that the answer already holds. Small messages are not
// counted.
func (a *answer) pack(ctx context.Context, message any) (any, error) {
	m, is := message.(proto.Message)
	if a == nil || !is {
		return message, nil
	}
	size := proto.Size(m)
	if mem.IsBelowBufferPoolingThreshold(size) {
		return message, nil
	}
	p := &trackedMessage{message: m, size: size, bytes: min(int64(size), a.budget.perConn), of: a}
	if err := a.track(ctx, p.bytes); err != nil {
		return nil, err
	}
	if !a.unread.add(p) {
		a.release(p.bytes)
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "the connection is closed")
	}
	return p, nil
}

func (a *answer) track(ctx context.Context, bytes int64) error {
	a.mu.Lock()
	more := a.buffered + bytes - a.held
	a.buffered += bytes
	a.mu.Unlock()
	if more <= 0 {
		return nil
	}
	if err := a.budget.await(ctx, a.account, more); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.buffered -= bytes
		return a.overBudget(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += more
	return nil
}

// release is called when the transport releases a message.
func (a *answer) release(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buffered -= bytes
	if a.over {
		a.held -= bytes
		a.budget.release(a.account, bytes)
	}
}

func (a *answer) overBudget(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.guard.OverBudget(AnswerMemory)
	return wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "the response memory limit is reached: try again later")
}

// trackedMessage is a message in transit to a peer. It also implements the buffer pool that its bytes return to,
// which is how it learns that the transport has released them.
type trackedMessage struct {
	message proto.Message
	size    int
	bytes   int64
	of      *answer
	timer   *time.Timer
	pooled  bool
}

// maxPooled is the size up to which messages use pooled buffers: the pool's next buffer size is a megabyte.
const maxPooled = 32 << 10

// encode encodes the message.
func (p *trackedMessage) encode() (mem.BufferSlice, error) {
	buf := new([]byte)
	if p.pooled = p.size <= maxPooled; p.pooled {
		buf = mem.DefaultBufferPool().Get(p.size)
	} else {
		*buf = make([]byte, p.size)
	}
	encoded, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buf)[:0], p.message)
	p.message = nil
	if err != nil {
		p.Put(buf)
		return nil, err
	}
	*buf = encoded
	return mem.BufferSlice{mem.NewBuffer(buf, p)}, nil
}

// Get implements mem.BufferPool.
func (*trackedMessage) Get(length int) *[]byte { return mem.DefaultBufferPool().Get(length) }

// Put implements mem.BufferPool.
func (p *trackedMessage) Put(buf *[]byte) {
	if p.pooled {
		mem.DefaultBufferPool().Put(buf)
	}
	p.of.unread.drop(p)
}

// unread holds the messages that the transport buffers for a connection's peer. A message that stays unread for too
// long ends the connection.
type unread struct {
	limit time.Duration
	end   func()

	held int64 // guarded by the budget's mutex

	mu      sync.Mutex
	closed  bool
	parcels map[*trackedMessage]struct{}
}

func (u *unread) add(p *trackedMessage) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	if u.parcels == nil {
		u.parcels = map[*trackedMessage]struct{}{}
	}
	u.parcels[p] = struct{}{}
	p.timer = time.AfterFunc(u.limit, u.end)
	return true
}

func (u *unread) drop(p *trackedMessage) {
	u.mu.Lock()
	_, is := u.parcels[p]
	delete(u.parcels, p)
	u.mu.Unlock()
	if is {
		p.timer.Stop()
		p.of.release(p.bytes)
	}
}

// close releases all messages: when a connection ends, the transport does not release those it still buffers.
func (u *unread) close() {
	u.mu.Lock()
	u.closed = true
	left := u.parcels
	u.parcels = nil
	u.mu.Unlock()
	for p := range left {
		p.timer.Stop()
		p.of.release(p.bytes)
	}
}

// answerTo returns the account of a call's answer; nil if the guard does not manage its connection.
func (g *Guard) answerTo(ctx context.Context, a Admission, by account) *answer {
	f := filterOf(ctx)
	if f == nil {
		return nil
	}
	by.conn = &f.unread.held
	return &answer{guard: g, budget: g.answers, account: by, unread: f.unread, max: int64(a.AnswerBytes)}
}

// HTTP serves pages within the memory budget of answers, at an estimate of bytes(request) each, on the account of
// who(request). refuse answers requests that exceed it.
func (g *Guard) HTTP(next http.Handler, bytes func(*http.Request) int, who func(*http.Request) string,
	refuse func(http.ResponseWriter, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{guard: g, budget: g.answers, account: account{caller: who(r), conn: new(int64)}, max: int64(bytes(r))}
		if err := a.begin(r.Context()); err != nil {
			refuse(w, err)
			return
		}
		defer a.end()
		next.ServeHTTP(w, r)
	})
}
