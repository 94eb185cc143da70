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

// turns schedules the shards that give work to the agents of a connection, by the weights of the owners
// waiting in each and the duration of leases (start-time fair queueing), as a shard schedules its owners.
type turns struct {
	mu      sync.Mutex
	virtual float64
	held    map[string]turn // by the lease's subject
	// seconds is the moving average of the duration of a shard's leases, which a new lease is charged.
	seconds [wire.MaxShards]float64
	tags    [wire.MaxShards]float64
	failed  [wire.MaxShards]time.Time // time of each shard's latest failure or refusal
}

// passedOver is how long a shard that did not answer is skipped when asking for immediate work.
const passedOver = 5 * time.Second

// order returns the responsive shards of n, in the order of their turns.
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

// turn is the charge of a lease to a shard.
type turn struct {
	shard           int
	seconds, weight float64
}

// maxTurns bounds the remembered leases; an agent holds few.
const maxTurns = 4096

// served records that a shard granted work, with the weight of the waiting owners. A shard without work gains
// no credit.
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
	if t.held == nil || len(t.held) >= maxTurns {
		t.held = map[string]turn{}
	}
	t.held[r.GetLease().GetSubject()] = of
}

// averaged is the weight of a lease in the moving average.
const averaged = 0.2

// ended corrects the charge of a lease by its actual duration.
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

// endedKey is the context key of the lease that the requesting slot has ended.
type endedKey struct{}

// endedLease is a lease that an agent held for some time.
type endedLease struct {
	subject string
	took    time.Duration
}

// after records in the context which lease the requesting slot has ended.
func after(ctx context.Context, subject string, took time.Duration) context.Context {
	return context.WithValue(ctx, endedKey{}, endedLease{subject, took})
}

// markUnresponsive records that a shard did not answer or refused.
func (t *turns) markUnresponsive(shard int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[shard] = time.Now()
}

// askTime bounds a request for immediate work, after which the shard is skipped.
const askTime = 2 * time.Second

// lease requests work: from each shard in turn, and then from all of them until one has work.
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
			c.turns.markUnresponsive(shard)
		}
	}
	if req.GetWait().AsDuration() == 0 {
		proto.Reset(into)
		return nil
	}
	return c.await(ctx, sessions, time.Now().Add(req.GetWait().AsDuration()))
}

// leaseOf requests work from a shard.
func (c *sharded) leaseOf(ctx context.Context, shard int, req *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	r := &tilthv1.LeaseWorkResponse{}
	return r, c.invoke(toShard(ctx, shard), req, r)
}

// take responds with the work of a shard.
func (c *sharded) take(shard int, r *tilthv1.LeaseWorkResponse) {
	c.turns.served(shard, r)
	into := c.reply.(*tilthv1.LeaseWorkResponse)
	proto.Reset(into)
	proto.Merge(into, r)
}
