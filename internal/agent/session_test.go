package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// leaving is a tracker whose heartbeat reports the end of the session before it answers the leave call.
type leaving struct {
	tilthv1.AgentServiceClient
	end context.CancelFunc
}

func (l leaving) Leave(ctx context.Context, _ *tilthv1.LeaveRequest, _ ...grpc.CallOption) (*tilthv1.LeaveResponse, error) {
	l.end()
	return nil, ctx.Err()
}

// TestReceivedLeaveIsNotAWarning is a regression test: an agent warned about a failed leave although the tracker had
// received it.
func TestReceivedLeaveIsNotAWarning(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	var log bytes.Buffer
	s := newSession(&Config{}, leaving{end: end}, slog.New(slog.NewTextHandler(&log, nil)))
	s.leave(life)
	if log.Len() > 0 {
		t.Errorf("it says %s", log.String())
	}
}

// shardsOf are the trackers of a farm's shards, with their answers to a heartbeat.
type shardsOf struct {
	shards
	answer []func(ctx context.Context) error
}

// Invoke implements grpc.ClientConnInterface.
func (s *shardsOf) Invoke(ctx context.Context, method string, req, reply any, opts ...grpc.CallOption) error {
	return s.unary(ctx, method, req, reply, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		return s.answer[shardIn(ctx)](ctx)
	}, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (s *shardsOf) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

// TestShardThatDoesNotAnswerDelaysNoHeartbeatOfTheOthers is a regression test: while one shard's tracker stalled,
// the others only received every third heartbeat, which lets sessions expire in large farms.
func TestShardThatDoesNotAnswerDelaysNoHeartbeatOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, beats = 10 * time.Second, 6
		life, end := context.WithCancelCause(t.Context())
		var heard []time.Time
		farm := &shardsOf{answer: []func(context.Context) error{
			func(context.Context) error {
				if heard = append(heard, time.Now()); len(heard) == beats {
					end(nil)
				}
				return nil
			},
			func(ctx context.Context) error { // a stalled tracker
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			},
		}}
		farm.count.Store(2)
		s := newSession(&Config{}, tilthv1.NewAgentServiceClient(farm), slog.New(slog.DiscardHandler))
		s.id, s.interval = "a"+sessionSeparator+"b", interval
		s.beat(life, end)
		for i := 1; i < beats; i++ {
			if after := heard[i].Sub(heard[i-1]); after != interval {
				t.Errorf("heartbeat %d came after %v, want %v", i, after, interval)
			}
		}
	})
}

// TestRegrantedLeasesSurviveTheFirstHandler checks a revoked lease that the same agent gets again while its first
// handler still stops. The end of the first handler must not remove the second lease from heartbeats, or the tracker
// would revoke it as well.
func TestRegrantedLeasesSurviveTheFirstHandler(t *testing.T) {
	leave := map[uint32]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})}
	entered := make(chan struct{})
	cfg := &Config{Handler: HandlerFunc(func(_ context.Context, work *tilthv1.LeaseWorkResponse) error {
		entered <- struct{}{}
		<-leave[work.GetLease().GetAttempt()]
		return nil
	})}
	s := newSession(cfg, nil, slog.New(slog.DiscardHandler))
	handle := func(attempt uint32) (ended chan struct{}) {
		ended = make(chan struct{})
		lease := &tilthv1.LeaseToken{Subject: "batch", Attempt: attempt}
		go func() {
			s.handle(t.Context(), &tilthv1.LeaseWorkResponse{Lease: lease})
			close(ended)
		}()
		<-entered
		return ended
	}
	first, second := handle(1), handle(2)
	close(leave[1])
	<-first
	if tokens := s.tokens(); len(tokens) != 1 || tokens[0].GetAttempt() != 2 {
		t.Errorf("the heartbeat lists %v, want attempt 2", tokens)
	}
	close(leave[2])
	<-second
	if tokens := s.tokens(); len(tokens) != 0 {
		t.Errorf("the heartbeat lists %v after the end", tokens)
	}
}
