package agent

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
