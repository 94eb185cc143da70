package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// statusLine is a connection whose streams carry one status each and stay open.
type statusLine struct {
	grpc.ClientConnInterface
	begun int
}

// NewStream implements grpc.ClientConnInterface.
func (l *statusLine) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	l.begun++
	return &statusStream{ctx: ctx}, nil
}

type statusStream struct {
	ctx  context.Context
	done bool
}

func (s *statusStream) Header() (metadata.MD, error) { return nil, nil }
func (s *statusStream) Trailer() metadata.MD         { return nil }
func (s *statusStream) CloseSend() error             { return nil }
func (s *statusStream) Context() context.Context     { return s.ctx }
func (s *statusStream) SendMsg(any) error            { return nil }

func (s *statusStream) RecvMsg(m any) error {
	if s.done {
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	s.done = true
	m.(*tilthv1.WatchJobResponse).Status = &tilthv1.JobStatus{}
	return nil
}

// TestClientOfAnAttachedJobRenewsItsStream checks that a client begins a stream each second while the tracker
// answers, and that others keep theirs.
func TestClientOfAnAttachedJobRenewsItsStream(t *testing.T) {
	for attached, want := range map[bool]int{true: 10, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			line := &statusLine{}
			ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond)
			defer cancel()
			err := agent.Watch(ctx, line, discard, &tilthv1.WatchJobRequest{JobId: "job", Attached: attached},
				func(*tilthv1.JobEvent) error { return nil }, func(*tilthv1.JobStatus) error { return nil })
			if !errors.Is(err, context.DeadlineExceeded) || line.begun != want {
				t.Errorf("attached %v: began %d streams in 9.5 s, want %d (%v)", attached, line.begun, want, err)
			}
		})
	}
}
