package agent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// standing are the trackers of two shards, each with a waiting request for work.
type standing struct {
	*testing.T
	mu      sync.Mutex
	gives   [2]chan string // the subject of the lease that a shard grants; empty = none
	ends    func(ctx context.Context, shard int, calls int) (ended bool, err error)
	ended   [2]int // calls to end the wait
	back    []string
	cancels []int // shards whose wait was cancelled
}

func (s *standing) call(ctx context.Context, _ string, req, reply any) error {
	shard := shardIn(ctx)
	switch req := req.(type) {
	case *tilthv1.LeaseWorkRequest:
		if req.GetWait().AsDuration() == 0 {
			return nil
		}
		select {
		case subject := <-s.gives[shard]:
			if subject != "" {
				reply.(*tilthv1.LeaseWorkResponse).Lease = &tilthv1.LeaseToken{Session: req.GetSession(), Subject: subject}
			}
			return nil
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cancels = append(s.cancels, shard)
			return status.FromContextError(ctx.Err()).Err()
		}
	case *tilthv1.EndWaitRequest: // its answer overtakes that of the wait
		s.mu.Lock()
		s.ended[shard]++
		calls := s.ended[shard]
		s.mu.Unlock()
		ended, err := s.ends(ctx, shard, calls)
		reply.(*tilthv1.EndWaitResponse).Ended = ended
		return err
	case *tilthv1.ReturnLeaseRequest:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.back = append(s.back, req.GetLease().GetSubject())
		return nil
	}
	s.Errorf("the agent calls %T", req)
	return nil
}

// answer makes the waiting request at a shard return after a while.
func (s *standing) answer(shard int, subject string) {
	time.AfterFunc(time.Millisecond, func() { s.gives[shard] <- subject })
}

// TestWorkThatComesWhileAWaitIsEndedIsHandedBack checks that an agent with work from one shard ends its wait at
// another and returns any lease that it gets there. Cancelling the call used to lose such leases until the next
// heartbeats.
func TestWorkThatComesWhileAWaitIsEndedIsHandedBack(t *testing.T) {
	for name, c := range map[string]struct {
		ends    func(s *standing) func(ctx context.Context, shard, calls int) (bool, error)
		back    []string
		cancels []int
		ended   int
	}{
		"the shard has none": {
			ends: func(s *standing) func(context.Context, int, int) (bool, error) {
				return func(_ context.Context, shard, _ int) (bool, error) { s.answer(shard, ""); return true, nil }
			},
			ended: 1,
		},
		"its lease is on its way": {
			ends: func(s *standing) func(context.Context, int, int) (bool, error) {
				return func(_ context.Context, shard, _ int) (bool, error) { s.answer(shard, "other"); return false, nil }
			},
			back: []string{"other"}, ended: 1,
		},
		"the wait comes to the shard after its end": {
			ends: func(s *standing) func(context.Context, int, int) (bool, error) {
				return func(_ context.Context, shard, calls int) (bool, error) {
					if calls < 3 {
						return false, nil
					}
					s.answer(shard, "")
					return true, nil
				}
			},
			ended: 3,
		},
		"its tracker puts the call off": {
			ends: func(s *standing) func(context.Context, int, int) (bool, error) {
				return func(_ context.Context, shard, calls int) (bool, error) {
					if calls == 1 {
						return false, status.Error(codes.ResourceExhausted, "too many calls")
					}
					s.answer(shard, "other")
					return true, nil
				}
			},
			back: []string{"other"}, ended: 2,
		},
		"its tracker knows no such call": {
			ends: func(*standing) func(context.Context, int, int) (bool, error) {
				return func(context.Context, int, int) (bool, error) {
					return false, status.Error(codes.Unimplemented, "unknown method EndWait")
				}
			},
			cancels: []int{1}, ended: 1,
		},
		"its tracker does not answer": {
			ends: func(*standing) func(context.Context, int, int) (bool, error) {
				return func(ctx context.Context, _, _ int) (bool, error) { <-ctx.Done(); return false, ctx.Err() }
			},
			cancels: []int{1}, ended: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &standing{T: t, gives: [2]chan string{make(chan string, 1), make(chan string, 1)}}
				s.ends = c.ends(s)
				ctx, cancel := context.WithCancel(t.Context())
				reply := &tilthv1.LeaseWorkResponse{}
				conn := &sharded{shards: &shards{}, n: 2, reply: reply, do: s.call}
				go func() {
					time.Sleep(time.Millisecond)
					s.gives[0] <- "work"
				}()
				began := time.Now()
				err := conn.call(ctx, &tilthv1.LeaseWorkRequest{Session: "a.b", Wait: durationpb.New(time.Minute)})
				cancel() // like a caller with an answer
				if err != nil || reply.GetLease().GetSubject() != "work" {
					t.Fatalf("the agent is given %v, %v", reply.GetLease(), err)
				}
				if took := time.Since(began); took > time.Millisecond {
					t.Errorf("it waits for the other shard, %v", took)
				}
				time.Sleep(2 * askTime) // until everything has ended
				synctest.Wait()
				if !slices.Equal(s.back, c.back) || !slices.Equal(s.cancels, c.cancels) || s.ended != [2]int{0, c.ended} {
					t.Errorf("handed back %v, cancelled at %v, ended %v times; want %v, %v, %d times at shard 1",
						s.back, s.cancels, s.ended, c.back, c.cancels, c.ended)
				}
			})
		})
	}
}

// TestAgentThatStopsWhileItWaitsHandsBackWhatComes checks that a stopping agent asks for no more work and returns
// leases that it still gets.
func TestAgentThatStopsWhileItWaitsHandsBackWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &standing{T: t, gives: [2]chan string{make(chan string, 1), make(chan string, 1)}}
		s.ends = func(_ context.Context, shard, _ int) (bool, error) {
			s.answer(shard, []string{"", "late"}[shard])
			return shard == 0, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		conn := &sharded{shards: &shards{}, n: 2, reply: &tilthv1.LeaseWorkResponse{}, do: s.call}
		err := conn.call(ctx, &tilthv1.LeaseWorkRequest{Session: "a.b", Wait: durationpb.New(time.Minute)})
		if status.Code(err) != codes.Canceled {
			t.Errorf("the request ended with %v", err)
		}
		time.Sleep(2 * askTime)
		synctest.Wait()
		if !slices.Equal(s.back, []string{"late"}) || len(s.cancels) > 0 {
			t.Errorf("handed back %v, cancelled at %v", s.back, s.cancels)
		}
	})
}
