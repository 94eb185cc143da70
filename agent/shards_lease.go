package agent

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
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
	ask := func(ctx context.Context, shard int, wait *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
		wait.Session = sessions[shard]
		r := &tilthv1.LeaseWorkResponse{}
		return r, c.invoke(toShard(ctx, shard), wait, r)
	}
	for _, shard := range c.turns.order(c.n) {
		within, cancel := context.WithTimeout(ctx, askTime)
		r, err := ask(within, shard, &tilthv1.LeaseWorkRequest{})
		cancel()
		switch {
		case wire.Reason(err) == wire.ReasonVoidSession || ctx.Err() != nil:
			return err
		case err == nil && r.GetLease() != nil:
			c.turns.served(shard, r)
			proto.Reset(into)
			proto.Merge(into, r)
			return nil
		case err != nil:
			c.turns.silent(shard)
		}
	}
	if req.GetWait().AsDuration() == 0 {
		proto.Reset(into)
		return nil
	}
	return c.await(ctx, req, into, ask)
}

// askAgain is the pause before a shard is asked again that did not answer, or refused.
const askAgain = 500 * time.Millisecond

// longestAsk bounds a request that waits at a shard: a tracker that stands still is not waited for longer.
const longestAsk = 10 * time.Second

// await waits with all shards until one of them has work, or the request's time is over. Work of a second one is
// handed back, which is nobody's failure, and takes askTime at most.
//
// A shard gives work to whoever waits longest. So the first wait at each ends at random: if all idle agents stood in
// one order everywhere, shards that have work at the same time would all give it to the same agent.
func (c *sharded) await(
	ctx context.Context, req *tilthv1.LeaseWorkRequest, into *tilthv1.LeaseWorkResponse,
	ask func(context.Context, int, *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error),
) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	end := time.Now().Add(req.GetWait().AsDuration())
	var mu sync.Mutex
	var void error
	taken := false
	take := func(shard int, r *tilthv1.LeaseWorkResponse) (first bool) {
		mu.Lock()
		defer mu.Unlock()
		stop()
		if taken {
			return false
		}
		taken = true
		c.turns.served(shard, r)
		proto.Reset(into)
		proto.Merge(into, r)
		return true
	}
	var all sync.WaitGroup
	for shard := range c.n {
		all.Go(func() {
			longest := rand.N(longestAsk) + 1
			for left := time.Until(end); left > 0 && waiting.Err() == nil; left = time.Until(end) {
				wait := min(left, longest)
				longest = longestAsk
				within, cancel := context.WithTimeout(waiting, wait+askTime)
				r, err := ask(within, shard, &tilthv1.LeaseWorkRequest{Wait: durationpb.New(wait)})
				cancel()
				switch {
				case err == nil && r.GetLease() != nil:
					if !take(shard, r) {
						c.handBack(context.WithoutCancel(ctx), shard, r.GetLease())
					}
				case wire.Reason(err) == wire.ReasonVoidSession:
					mu.Lock()
					void = err
					mu.Unlock()
					stop()
				case err != nil:
					_ = retry.Sleep(waiting, min(askAgain, left))
				}
			}
		})
	}
	all.Wait()
	switch {
	case taken:
		return nil
	case void != nil:
		return void
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	proto.Reset(into)
	return nil
}

// handBack returns a lease that was granted beside another one.
func (c *sharded) handBack(ctx context.Context, shard int, lease *tilthv1.LeaseToken) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	// A lease that does not get back is in no heartbeat of the agent, and so is taken back.
	_ = c.do(toShard(ctx, shard), tilthv1.AgentService_ReturnLease_FullMethodName, &tilthv1.ReturnLeaseRequest{Lease: lease}, &tilthv1.ReturnLeaseResponse{})
}
