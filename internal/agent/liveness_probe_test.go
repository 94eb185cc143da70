package agent

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// slow is a stream to a slow tracker.
type slow struct {
	grpc.ClientStream
	ctx            context.Context
	sends, answers time.Duration
	got            *atomic.Int32
}

func (s *slow) SendMsg(any) error {
	if retry.Sleep(s.ctx, s.sends) != nil {
		return io.EOF
	}
	s.got.Add(1)
	return nil
}

func (s *slow) CloseSend() error { return nil }

func (s *slow) RecvMsg(any) error {
	if retry.Sleep(s.ctx, s.answers) != nil {
		return status.FromContextError(s.ctx.Err()).Err()
	}
	return nil
}

// TestUploadToAllShardsDoesNotWaitForATrackerThatIsStopped is a regression test: an upload to all shards waited for
// a stopped tracker until its timeout.
func TestUploadToAllShardsDoesNotWaitForATrackerThatIsStopped(t *testing.T) {
	const ever, pieces = 24 * time.Hour, 3
	for name, c := range map[string]struct {
		second  slow
		stopped bool
		lost    bool
	}{
		"which takes no more":     {second: slow{sends: ever}, stopped: true, lost: true},
		"which does not answer":   {second: slow{answers: ever}, stopped: true, lost: true},
		"which only takes long":   {second: slow{sends: 7 * time.Second, answers: time.Minute}},
		"which has its own words": {second: slow{answers: time.Second}, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shards{alive: func(ctx context.Context, _ *grpc.ClientConn, shard int) error {
					if shard == 1 && c.stopped {
						<-ctx.Done()
						return status.FromContextError(ctx.Err()).Err()
					}
					return nil
				}}
				s.count.Store(2)
				var got [2]atomic.Int32
				stream, err := s.stream(t.Context(), nil, nil, tilthv1.ArtifactService_UploadArtifact_FullMethodName,
					func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
						one := slow{}
						if shardIn(ctx) == 1 {
							one = c.second
						}
						one.ctx, one.got = ctx, &got[shardIn(ctx)]
						return &one, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for range pieces {
					if err := stream.SendMsg(&tilthv1.UploadArtifactRequest{}); err != nil {
						t.Fatal(err)
					}
				}
				err = stream.RecvMsg(&tilthv1.UploadArtifactResponse{})
				if took := time.Since(began); c.stopped && took > askAfter+answerTime {
					t.Errorf("it takes %v", took)
				}
				if n := got[0].Load(); n != pieces {
					t.Errorf("the other shard got %d pieces", n)
				}
				if retry.Lost(err) != c.lost || c.lost && !strings.Contains(err.Error(), "shard 1 does not answer") || !c.lost && err != nil {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}

// TestDownloadDoesNotWaitForATrackerThatIsStopped checks the same for downloads that try one shard after another.
func TestDownloadDoesNotWaitForATrackerThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shards{alive: func(context.Context, *grpc.ClientConn, int) error {
			return status.Error(codes.Unavailable, "no answer")
		}}
		s.count.Store(2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := s.stream(ctx, nil, nil, tilthv1.ArtifactService_DownloadArtifact_FullMethodName,
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &slow{ctx: ctx, answers: time.Hour, got: &atomic.Int32{}}, nil
			})
		if err == nil {
			err = stream.SendMsg(&tilthv1.DownloadArtifactRequest{})
		}
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = stream.RecvMsg(&tilthv1.DownloadArtifactResponse{})
		if took := time.Since(began); !retry.Lost(err) || took > askAfter+answerTime {
			t.Errorf("it ends after %v with %v", took, err)
		}
	})
}

// TestCallOfAllShardsDoesNotWaitForATrackerThatIsStopped checks the same for calls of all shards.
func TestCallOfAllShardsDoesNotWaitForATrackerThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shards{alive: func(ctx context.Context, _ *grpc.ClientConn, shard int) error {
			return status.Error(codes.Unavailable, "no answer")
		}}
		s.count.Store(2)
		began := time.Now()
		err := s.unary(t.Context(), tilthv1.ArtifactService_StatArtifact_FullMethodName, &tilthv1.StatArtifactRequest{}, &tilthv1.StatArtifactResponse{}, nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				if shardIn(ctx) == 1 {
					<-ctx.Done()
				}
				return status.FromContextError(ctx.Err()).Err()
			})
		if took := time.Since(began); !retry.Lost(err) || took > askAfter+answerTime {
			t.Errorf("it ends after %v with %v", took, err)
		}
	})
}

// TestRefusedProbeCountsAsAlive checks that a tracker that refuses a probe, because of its rate or memory limits,
// counts as alive.
func TestRefusedProbeCountsAsAlive(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		silent bool
	}{
		"no error":        {nil, false},
		"too often":       {wire.RefuseUntil(time.Second, codes.ResourceExhausted, wire.ReasonRate, "too often"), false},
		"without room":    {wire.Refuse(codes.Unavailable, wire.ReasonOverloaded, "no room"), false},
		"not its tracker": {wire.Refuse(codes.Unavailable, wire.ReasonStandby, "another one has it"), true},
		"no connection":   {status.Error(codes.Unavailable, "connection refused"), true},
		"no answer":       {status.Error(codes.DeadlineExceeded, "too late"), true},
		"not served":      {status.Error(codes.Unimplemented, "unknown service"), false},
	} {
		if got := silent(c.err); got != c.silent {
			t.Errorf("%s: silent is %v", name, got)
		}
	}
}

// TestStalledCallsReturnTheTrackersError checks that a call returns the tracker's error from before it stalled, and
// that results do not wait for a probe.
func TestStalledCallsReturnTheTrackersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := status.Error(codes.NotFound, "there is no such session")
		began := time.Now()
		err := attend(t.Context(), 1, func(ctx context.Context) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}, func() { t.Error("the call is given up") }, func() error {
			time.Sleep(askAfter + time.Second)
			return own
		})
		if took := time.Since(began); status.Code(err) != codes.NotFound || took > askAfter+time.Second {
			t.Errorf("it ends after %v with %v", took, err)
		}
	})
}
