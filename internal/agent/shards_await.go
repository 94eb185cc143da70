package agent

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// askAgain is the pause before a shard is asked again that did not answer, or refused.
	askAgain = 500 * time.Millisecond
	// longestAsk bounds a request that waits at a shard: a tracker that stands still is not waited for longer.
	longestAsk = 10 * time.Second
	// endAgain is the pause before a wait is ended again that had not come to its tracker yet.
	endAgain = 50 * time.Millisecond
)

// wait is a request for work that waits at every shard.
type wait struct {
	*sharded
	name     string // of its requests, in the session with each shard
	sessions []string
	end      time.Time
	open     context.Context // is over once no shard is to be asked again
	answers  chan waited
}

// waited is what became of the wait at a shard.
type waited struct {
	shard int
	work  *tilthv1.LeaseWorkResponse // nil = none
	void  error                      // that the session is
}

// await waits with all shards until one of them has work, or the request's time is over. What others give meanwhile
// is handed back, which is nobody's failure.
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
	proto.Reset(c.reply.(*tilthv1.LeaseWorkResponse))
	return nil
}

// call is the context of calls, and ends it.
type call struct {
	context.Context
	end context.CancelFunc
}

// at waits at a shard.
//
// A shard gives work to whoever waits longest. So the first wait at each ends at random: if all idle agents stood in
// one order everywhere, shards that have work at the same time would all give it to the same agent.
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

// finish ends the waits that are left, and hands back what they were given. Their calls are not cancelled, unless a
// tracker takes too long or knows no other way: a lease that was on its way would be lost, and nobody would have its
// work until its tracker has found that no heartbeat lists it.
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

// endAt ends the wait at a shard, which may still be on its way there.
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

// isDenied says whether a call that fails would fail the next time as well.
func isDenied(err error) bool {
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound:
		return true
	}
	return false
}

// handBack returns a lease that was granted beside another one.
func (c *sharded) handBack(ctx context.Context, shard int, lease *tilthv1.LeaseToken) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	// A lease that does not get back is in no heartbeat of the agent, and so is taken back.
	_ = c.do(toShard(ctx, shard), tilthv1.AgentService_ReturnLease_FullMethodName, &tilthv1.ReturnLeaseRequest{Lease: lease}, &tilthv1.ReturnLeaseResponse{})
}
