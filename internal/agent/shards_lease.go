package agent

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
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
	of := turn{shard: shard, seconds: cmp.Or(t.seconds[shard], 1), weight: r.GetWeight()}
	if of.weight <= 0 {
		of.weight = 1
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
		c.answer(nil)
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
	c.answer(r)
}

// together merges the responses of all shards: it adds or lists what each shard knows alone, and takes shared
// values from the first.
func together(replies []proto.Message) proto.Message {
	first := replies[0]
	for _, other := range replies[1:] {
		switch first := first.(type) {
		case *tilthv1.ListOwnersResponse:
			addOwners(first, other.(*tilthv1.ListOwnersResponse))
		case *tilthv1.StatArtifactResponse:
			o := other.(*tilthv1.StatArtifactResponse)
			if first.GetComplete() != o.GetComplete() || first.GetReceivedBytes() != o.GetReceivedBytes() {
				first.Complete, first.ReceivedBytes = false, 0 // it is sent to all shards from the beginning
			}
		case *tilthv1.ListAgentsResponse:
			byName := map[string]*tilthv1.Agent{}
			for _, a := range other.(*tilthv1.ListAgentsResponse).GetAgents() {
				byName[a.GetSpec().GetName()] = a
			}
			for _, a := range first.GetAgents() {
				addAgent(a, byName[a.GetSpec().GetName()])
			}
		case *tilthv1.GetAgentResponse:
			addAgent(first.GetAgent(), other.(*tilthv1.GetAgentResponse).GetAgent())
		case *tilthv1.ListDevicesResponse:
			byName := map[string]*tilthv1.Device{}
			for _, d := range other.(*tilthv1.ListDevicesResponse).GetDevices() {
				byName[d.GetAgent().GetSpec().GetName()] = d
			}
			for _, d := range first.GetDevices() {
				addDevice(d, byName[d.GetAgent().GetSpec().GetName()])
			}
		case *tilthv1.GetDeviceResponse:
			addDevice(first.GetDevice(), other.(*tilthv1.GetDeviceResponse).GetDevice())
		}
	}
	return first
}

// addOwners merges two pages with the same start. The merged page ends where the shorter one ends.
func addOwners(page, other *tilthv1.ListOwnersResponse) {
	page.Owners = append(page.Owners, other.GetOwners()...)
	slices.SortFunc(page.Owners, func(a, b *tilthv1.Owner) int { return cmp.Compare(a.GetName(), b.GetName()) })
	if end := other.GetNextPageToken(); end != "" && (page.GetNextPageToken() == "" || end < page.GetNextPageToken()) {
		page.NextPageToken = end
	}
	if end := page.GetNextPageToken(); end != "" { // the token is a prefix and the name of the page's last owner
		page.Owners = slices.DeleteFunc(page.Owners, func(o *tilthv1.Owner) bool { return end[:1]+o.GetName() > end })
	}
}

// addAgent merges an agent from another shard, which may be nil.
func addAgent(a, other *tilthv1.Agent) {
	if a == nil || other == nil {
		return
	}
	a.Completed += other.GetCompleted()
	a.Failed += other.GetFailed()
	for _, state := range []tilthv1.AgentState{tilthv1.AgentState_AGENT_STATE_IDLE, tilthv1.AgentState_AGENT_STATE_BUSY} {
		if other.GetState() == state && a.GetState() != tilthv1.AgentState_AGENT_STATE_BUSY {
			a.State = state
		}
	}
	if other.GetSeenAt().AsTime().After(a.GetSeenAt().AsTime()) {
		a.SeenAt = other.GetSeenAt()
	}
	if other.GetRestingUntil().AsTime().After(a.GetRestingUntil().AsTime()) {
		a.RestingUntil, a.RestReason = other.GetRestingUntil(), other.GetRestReason()
	}
}

// addDevice merges a device from another shard, which may be nil. States are ordered by severity.
func addDevice(d, other *tilthv1.Device) {
	if d == nil || other == nil {
		return
	}
	addAgent(d.GetAgent(), other.GetAgent())
	d.Leases += other.GetLeases()
	if other.GetState() > d.GetState() {
		d.State, d.Cordon, d.Quarantine = other.GetState(), other.GetCordon(), other.GetQuarantine()
	}
}

const (
	// askAgain is the pause before a shard that did not answer or refused is asked again.
	askAgain = 500 * time.Millisecond
	// longestAsk bounds a waiting request at a shard, in case its tracker hangs.
	longestAsk = 10 * time.Second
	// endAgain is the pause before retrying to end a wait that had not reached its tracker.
	endAgain = 50 * time.Millisecond
)

// wait is a request for work that waits at every shard.
type wait struct {
	*sharded
	name     string // name of its requests in the session with each shard
	sessions []string
	end      time.Time
	open     context.Context // ends when no shard is to be asked again
	answers  chan waited
}

// waited is the result of waiting at a shard.
type waited struct {
	shard int
	work  *tilthv1.LeaseWorkResponse // nil if none
	void  error                      // why the session is void
}

// await waits at all shards until one has work or the request's time is over. Work that other shards grant
// meanwhile is returned without counting as a failure.
func (c *sharded) await(ctx context.Context, sessions []string, end time.Time) error {
	open, enough := context.WithCancel(ctx)
	defer enough()
	w := &wait{
		sharded: c, name: strconv.FormatUint(c.requests.Add(1), 36), sessions: sessions, end: end, open: open,
		answers: make(chan waited, c.n),
	}
	calls := make([]call, c.n)
	for shard := range calls {
		calls[shard].Context, calls[shard].end = context.WithCancel(context.WithoutCancel(ctx))
		go func() { w.answers <- w.at(calls[shard], shard) }()
	}
	for left := c.n - 1; left >= 0; left-- {
		select {
		case <-ctx.Done():
			go w.finish(calls, left+1)
			return status.FromContextError(ctx.Err()).Err()
		case one := <-w.answers:
			calls[one.shard].end()
			switch {
			case one.work != nil:
				c.take(one.shard, one.work)
				go w.finish(calls, left)
				return nil
			case one.void != nil:
				for _, call := range calls {
					call.end()
				}
				return one.void
			}
		}
	}
	c.answer(nil)
	return nil
}

// call is the context of calls, with its cancel function.
type call struct {
	context.Context
	end context.CancelFunc
}

// at waits at a shard.
//
// A shard grants work to the agent that waits longest. The first wait at each shard therefore has a random
// duration: if all idle agents queued in the same order everywhere, shards with work at the same time would
// all grant it to the same agent.
func (w *wait) at(call context.Context, shard int) waited {
	longest := rand.N(longestAsk) + 1
	for left := time.Until(w.end); left > 0 && w.open.Err() == nil; left = time.Until(w.end) {
		patience := min(left, longest)
		longest = longestAsk
		within, cancel := context.WithTimeout(call, patience+askTime)
		work, err := w.leaseOf(within, shard, &tilthv1.LeaseWorkRequest{
			Session: w.sessions[shard], Wait: durationpb.New(patience), Name: w.name,
		})
		cancel()
		switch {
		case err == nil && work.GetLease() != nil:
			return waited{shard: shard, work: work}
		case wire.Reason(err) == wire.ReasonVoidSession:
			return waited{shard: shard, void: err}
		case err != nil:
			_ = retry.Sleep(w.open, min(askAgain, left))
		}
	}
	return waited{shard: shard}
}

// finish ends the remaining waits and returns the leases that they received. It does not cancel their calls,
// unless a tracker takes too long or does not support ending a wait: a cancelled call may lose a lease, whose
// work would then be blocked until the tracker notices that no heartbeat lists it.
func (w *wait) finish(calls []call, left int) {
	for shard, call := range calls {
		late := time.AfterFunc(askTime, call.end)
		defer late.Stop()
		go func() {
			if w.endAt(call, shard) != nil {
				call.end()
			}
		}()
	}
	for range left {
		one := <-w.answers
		if one.work != nil {
			w.handBack(context.WithoutCancel(w.open), one.shard, one.work.GetLease())
		}
		calls[one.shard].end()
	}
}

// endAt ends the wait at a shard, which may not have reached it yet.
func (w *wait) endAt(call context.Context, shard int) error {
	for call.Err() == nil {
		r := &tilthv1.EndWaitResponse{}
		err := w.do(toShard(call, shard), tilthv1.AgentService_EndWait_FullMethodName,
			&tilthv1.EndWaitRequest{Session: w.sessions[shard], Name: w.name}, r)
		if r.GetEnded() || isDenied(err) {
			return err
		}
		_ = retry.Sleep(call, endAgain)
	}
	return nil
}

// isDenied reports whether retrying a failed call is pointless.
func isDenied(err error) bool {
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound:
		return true
	}
	return false
}

// handBack returns a lease that was granted in addition to another one.
func (c *sharded) handBack(ctx context.Context, shard int, lease *tilthv1.LeaseToken) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	// If the call fails, no heartbeat lists the lease, and the tracker revokes it.
	_ = c.do(toShard(ctx, shard), tilthv1.AgentService_ReturnLease_FullMethodName, &tilthv1.ReturnLeaseRequest{Lease: lease}, &tilthv1.ReturnLeaseResponse{})
}
