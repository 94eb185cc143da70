package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// turns are those of the shards in giving work to the agents of a connection: by the weights of the owners who wait
// in each, and by the time that leases take, as in a shard those of owners are (start-time fair queueing).
type turns struct {
	mu      sync.Mutex
	virtual float64
	held    map[string]turn // by the lease's subject
	// seconds is what a lease of each shard takes: the moving average, which it is charged at first.
	seconds [wire.MostShards]float64
	tags    [wire.MostShards]float64
	failed  [wire.MostShards]time.Time // when each did not answer last, or refused
}

// passedOver is for how long a shard that did not answer is not asked for work that it may have at once.
const passedOver = 5 * time.Second

// order are those of n shards that answer, whose turn it is first.
func (t *turns) order(n int) (order []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for shard := range n {
		if time.Since(t.failed[shard]) >= passedOver {
			order = append(order, shard)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(t.tags[a], t.virtual), max(t.tags[b], t.virtual)) })
	return order
}

// turn is what a shard was charged for a lease.
type turn struct {
	shard           int
	seconds, weight float64
}

// mostTurns bounds the leases that are remembered; an agent has a handful.
const mostTurns = 4096

// served notes that a shard gave work, where owners of so much weight wait. One that had none earns nothing by it.
func (t *turns) served(shard int, r *tilthv1.LeaseWorkResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.virtual = max(t.virtual, t.tags[shard])
	of := turn{shard: shard, seconds: t.seconds[shard], weight: r.GetWeight()}
	if of.weight <= 0 {
		of.weight = 1
	}
	if of.seconds == 0 {
		of.seconds = 1
	}
	t.tags[shard] = t.virtual + of.seconds/of.weight
	if t.held == nil || len(t.held) >= mostTurns {
		t.held = map[string]turn{}
	}
	t.held[r.GetLease().GetSubject()] = of
}

// averaged is the part of a lease in the moving average of its shard's.
const averaged = 0.2

// ended puts right what a lease was charged, which took so long.
func (t *turns) ended(subject string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, is := t.held[subject]
	if !is {
		return
	}
	delete(t.held, subject)
	seconds := took.Seconds()
	t.tags[of.shard] += (seconds - of.seconds) / of.weight
	if t.seconds[of.shard] == 0 {
		t.seconds[of.shard] = seconds
	}
	t.seconds[of.shard] += averaged * (seconds - t.seconds[of.shard])
}

// endedKey is where the context of a request for work has the lease that its slot has ended.
type endedKey struct{}

// endedLease is a lease that an agent held for some time.
type endedLease struct {
	subject string
	took    time.Duration
}

// after says which lease the one who asks for work has ended.
func after(ctx context.Context, subject string, took time.Duration) context.Context {
	return context.WithValue(ctx, endedKey{}, endedLease{subject, took})
}

// silent notes that a shard did not answer, or refused.
func (t *turns) silent(shard int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[shard] = time.Now()
}

// askTime bounds a request for work that does not wait: a shard that does not answer within is passed over.
const askTime = 2 * time.Second

// lease asks for work: the shards by turns, and then all of them until one has some.
func (c *sharded) lease(ctx context.Context, req *tilthv1.LeaseWorkRequest) error {
	sessions, err := c.split(req.GetSession())
	if err != nil {
		return err
	}
	if ended, is := ctx.Value(endedKey{}).(endedLease); is {
		c.turns.ended(ended.subject, ended.took)
	}
	into := c.reply.(*tilthv1.LeaseWorkResponse)
	for _, shard := range c.turns.order(c.n) {
		within, cancel := context.WithTimeout(ctx, askTime)
		r, err := c.leaseOf(within, shard, &tilthv1.LeaseWorkRequest{Session: sessions[shard]})
		cancel()
		switch {
		case wire.Reason(err) == wire.ReasonVoidSession || ctx.Err() != nil:
			return err
		case err == nil && r.GetLease() != nil:
			c.take(shard, r)
			return nil
		case err != nil:
			c.turns.silent(shard)
		}
	}
	if req.GetWait().AsDuration() == 0 {
		proto.Reset(into)
		return nil
	}
	return c.await(ctx, sessions, time.Now().Add(req.GetWait().AsDuration()))
}

// leaseOf asks a shard for work.
func (c *sharded) leaseOf(ctx context.Context, shard int, req *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	r := &tilthv1.LeaseWorkResponse{}
	return r, c.invoke(toShard(ctx, shard), req, r)
}

// take answers with the work of a shard.
func (c *sharded) take(shard int, r *tilthv1.LeaseWorkResponse) {
	c.turns.served(shard, r)
	into := c.reply.(*tilthv1.LeaseWorkResponse)
	proto.Reset(into)
	proto.Merge(into, r)
}
