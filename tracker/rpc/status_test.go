package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/tracker/state"
)

// counted records the refusals counted by a service.
type counted struct{ refused []*state.Refusal }

func (c *counted) Refused(r *state.Refusal) { c.refused = append(c.refused, r) }
func (c *counted) Observe(state.Fact)       {}

func TestRefusalIsAStatusOfItsKindAndIsCounted(t *testing.T) {
	for kind, want := range map[state.RefusalKind]codes.Code{
		state.Invalid: codes.InvalidArgument, state.NotFound: codes.NotFound, state.NotNow: codes.FailedPrecondition,
		state.Denied: codes.PermissionDenied, state.VoidSession: codes.NotFound, state.StaleLease: codes.FailedPrecondition,
		state.OtherHistory:    codes.FailedPrecondition,
		state.MissingArtifact: codes.FailedPrecondition, state.Overloaded: codes.Unavailable,
		state.OverQuota: codes.ResourceExhausted, state.Stopping: codes.Unavailable, state.Unreadable: codes.Internal,
	} {
		c := &counted{}
		s := New(nil, Shard{}, nil, c, &Releases{}, slog.New(slog.DiscardHandler))
		err := s.status(fmt.Errorf("do it: %w", state.RefuseOf(kind, "field", "is %d", 100)))
		if status.Code(err) != want {
			t.Errorf("kind %d is %v, want %v", kind, err, want)
		}
		if len(c.refused) != 1 || c.refused[0].Kind != kind {
			t.Errorf("kind %d is counted as %v", kind, c.refused)
		}
	}
}

func TestOtherErrorsAreNotCountedAsRefusals(t *testing.T) {
	c := &counted{}
	s := New(nil, Shard{}, nil, c, &Releases{}, slog.New(slog.DiscardHandler))
	for err, want := range map[error]codes.Code{
		nil: codes.OK, context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded,
		status.Error(codes.DataLoss, "lost"): codes.DataLoss, errors.New("else"): codes.Unknown,
	} {
		if got := status.Code(s.status(err)); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
	if len(c.refused) != 0 {
		t.Errorf("%d refusals are counted", len(c.refused))
	}
}
