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

// standing are trackers of two shards, at each of which one request for work waits.
type standing struct {
	*testing.T
	mu      sync.Mutex
	gives   [2]chan string // the subject of a lease, by which a shard answers; empty = none
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
	case *tilthv1.EndWaitRequest: // whose answer overtakes that of the wait
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

// answer has the wait at a shard answered in a while.
func (s *standing) answer(shard int, subject string) {
	time.AfterFunc(time.Millisecond, func() { s.gives[shard] <- subject })
}

// An agent that is given work by one shard while it waits at another ends the wait there. It used to cancel the call,
// and work that the other had just given stayed in nobody's hands until heartbeats showed it.
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
				cancel() // as whoever has an answer does
				if err != nil || reply.GetLease().GetSubject() != "work" {
					t.Fatalf("the agent is given %v, %v", reply.GetLease(), err)
				}
				if took := time.Since(began); took > time.Millisecond {
					t.Errorf("it waits for the other shard, %v", took)
				}
				time.Sleep(2 * askTime) // until all has come to its end
				synctest.Wait()
				if !slices.Equal(s.back, c.back) || !slices.Equal(s.cancels, c.cancels) || s.ended != [2]int{0, c.ended} {
					t.Errorf("handed back %v, cancelled at %v, ended %v times; want %v, %v, %d times at shard 1",
						s.back, s.cancels, s.ended, c.back, c.cancels, c.ended)
				}
			})
		})
	}
}

// An agent that stops asks for no more work. What it is given at that moment goes back.
func TestAnAgentThatStopsWhileItWaitsHandsBackWhatComes(t *testing.T) {
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
