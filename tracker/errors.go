package tracker

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// invalid refuses a request for one of its fields.
func invalid(field, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	s, err := status.New(codes.InvalidArgument, field+": "+text).WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: text}},
	})
	if err != nil {
		return status.Error(codes.InvalidArgument, field+": "+text)
	}
	return s.Err()
}

// invalidItem is invalid of a field of an item of a list, or of the item itself (empty). The name is made only of what
// is wrong.
func invalidItem(list string, at int, field, format string, args ...any) error {
	name := fmt.Sprintf("%s[%d]", list, at)
	if field != "" {
		name += "." + field
	}
	return invalid(name, format, args...)
}

// checkName refuses a name that is empty, or too long for a key of the store.
func checkName(field, name string) error {
	if name == "" {
		return invalid(field, "is empty")
	}
	if len(name) > records.MaxNameBytes {
		return invalid(field, "has %d bytes, at most %d will do", len(name), records.MaxNameBytes)
	}
	return nil
}

// checkKeyName refuses a name that cannot be a part of a key, in which parts end with a zero byte.
func checkKeyName(field, name string) error {
	if err := checkName(field, name); err != nil {
		return err
	}
	if strings.IndexByte(name, 0) >= 0 {
		return invalid(field, "holds a zero byte")
	}
	return nil
}

func (t *Tracker) stale(call string, token *tilthv1.LeaseToken) error {
	t.metrics.stale.WithLabelValues(call).Inc()
	t.log.Warn("stale lease refused", "call", call, "subject", token.GetSubject(), "attempt", token.GetAttempt())
	return wire.Refuse(codes.FailedPrecondition, wire.ReasonStaleLease,
		"lease of %q, attempt %d, is no longer held: drop the work", token.GetSubject(), token.GetAttempt())
}

// repeated counts a call whose first answer was lost, most likely.
func (t *Tracker) repeated(call string) { t.metrics.repeated.WithLabelValues(call).Inc() }

func voidSession(session string) error {
	return wire.Refuse(codes.NotFound, wire.ReasonVoidSession, "session %q is void: join again", session)
}

func missingArtifact(digest string) error {
	return wire.Refuse(codes.FailedPrecondition, wire.ReasonMissingArtifact, "artifact %s is not in the store: upload it", digest)
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %q does not exist", what, id)
}
