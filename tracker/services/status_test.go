package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/tracker/refusal"
	"github.com/tilth-dev/tilth/tracker/state"
)

// counted records the refusals counted by a service.
type counted struct{ refused []*refusal.Error }

func (c *counted) Refused(r *refusal.Error) { c.refused = append(c.refused, r) }
func (c *counted) Observe(state.Fact)       {}

func TestARefusalIsAStatusOfItsKindAndIsCounted(t *testing.T) {
	for kind, want := range map[refusal.Kind]codes.Code{
		refusal.Invalid: codes.InvalidArgument, refusal.NotFound: codes.NotFound, refusal.NotNow: codes.FailedPrecondition,
		refusal.Denied: codes.PermissionDenied, refusal.VoidSession: codes.NotFound, refusal.StaleLease: codes.FailedPrecondition,
		refusal.OtherHistory:    codes.FailedPrecondition,
		refusal.MissingArtifact: codes.FailedPrecondition, refusal.Overloaded: codes.Unavailable,
		refusal.OverQuota: codes.ResourceExhausted, refusal.Stopping: codes.Unavailable, refusal.Unreadable: codes.Internal,
	} {
		c := &counted{}
		s := New(nil, Shard{}, nil, c, &Releases{}, slog.New(slog.DiscardHandler))
		err := s.status(fmt.Errorf("do it: %w", refusal.Of(kind, "field", "is %d", 100)))
		if status.Code(err) != want {
			t.Errorf("kind %d is %v, want %v", kind, err, want)
		}
		if len(c.refused) != 1 || c.refused[0].Kind != kind {
			t.Errorf("kind %d is counted as %v", kind, c.refused)
		}
	}
}

func TestWhatIsNoRefusalIsNotCounted(t *testing.T) {
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
