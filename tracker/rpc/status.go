package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// status converts an error of the coordinator or the state machine to a gRPC status. It counts refusals.
func (s *Services) status(err error) error {
	var r *state.Refusal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case !errors.As(err, &r):
		return err
	}
	s.counts.Refused(r)
	if r.Kind == state.StaleLease {
		s.log.Warn("stale lease refused", "call", r.Of, "error", r.Text)
	}
	return statusOf(r)
}

// refusals maps kinds of refusals to statuses; those that callers act on have a reason.
var refusals = map[state.RefusalKind]struct {
	code   codes.Code
	reason string
}{
	state.NotFound:        {codes.NotFound, ""},
	state.NotNow:          {codes.FailedPrecondition, ""},
	state.Denied:          {codes.PermissionDenied, ""},
	state.VoidSession:     {codes.NotFound, wire.ReasonVoidSession},
	state.StaleLease:      {codes.FailedPrecondition, wire.ReasonStaleLease},
	state.OtherHistory:    {codes.FailedPrecondition, wire.ReasonHistory},
	state.MissingArtifact: {codes.FailedPrecondition, wire.ReasonMissingArtifact},
	state.Overloaded:      {codes.Unavailable, wire.ReasonOverloaded},
	state.StoreAway:       {codes.Unavailable, wire.ReasonStoreAway},
	state.OverQuota:       {codes.ResourceExhausted, wire.ReasonQuota},
	state.Stopping:        {codes.Unavailable, wire.ReasonStopping},
}

// statusOf converts a refusal to a gRPC status.
func statusOf(r *state.Refusal) error {
	if r.Kind == state.Invalid {
		return invalid(r.Of, "%s", r.Text)
	}
	as, known := refusals[r.Kind]
	switch {
	case !known:
		return status.Error(codes.Internal, r.Text)
	case as.reason == "":
		return status.Error(as.code, r.Text)
	}
	return wire.Refuse(as.code, as.reason, "%s", r.Text)
}

// invalid returns an InvalidArgument status for a field.
func invalid(field, format string, args ...any) error {
	return wire.Invalid(field, fmt.Sprintf(format, args...))
}

// invalidItem is invalid for a field of a list item, or for the item if field is empty. It formats the name only on
// failure.
func invalidItem(list string, at int, field, format string, args ...any) error {
	name := fmt.Sprintf("%s[%d]", list, at)
	if field != "" {
		name += "." + field
	}
	return invalid(name, format, args...)
}

// notFound returns a NotFound status.
func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %q does not exist", what, id)
}

// StoreError returns a status for a store that cannot be read; nil for nil.
func StoreError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, records.ErrAway) { // only the log names the server
		return wire.Refuse(codes.Unavailable, wire.ReasonStoreAway, "%v: try again later", records.ErrAway)
	}
	return status.Errorf(codes.Internal, "read the records: %v", err)
}
