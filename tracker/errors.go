package tracker

import (
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Reasons carried by the ErrorInfo detail of a refusal, so that agents need not read messages.
const (
	// ReasonStaleLease comes with FAILED_PRECONDITION: the lease is no longer held; drop the work.
	ReasonStaleLease = "STALE_LEASE"
	// ReasonVoidSession comes with NOT_FOUND: join again.
	ReasonVoidSession = "VOID_SESSION"
	// ReasonMissingArtifact comes with FAILED_PRECONDITION: upload it and report again.
	ReasonMissingArtifact = "MISSING_ARTIFACT"

	errorDomain = "tilth.v1"
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

func refuse(code codes.Code, reason, format string, args ...any) error {
	s := status.Newf(code, format, args...)
	if detailed, err := s.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain}); err == nil {
		s = detailed
	}
	return s.Err()
}

func (t *Tracker) stale(call string, token *tilthv1.LeaseToken) error {
	t.metrics.stale.WithLabelValues(call).Inc()
	t.log.Warn("stale lease refused", "call", call, "subject", token.GetSubject(), "attempt", token.GetAttempt())
	return refuse(codes.FailedPrecondition, ReasonStaleLease,
		"lease of %q, attempt %d, is no longer held: drop the work", token.GetSubject(), token.GetAttempt())
}

func voidSession(session string) error {
	return refuse(codes.NotFound, ReasonVoidSession, "session %q is void: join again", session)
}

func missingArtifact(digest string) error {
	return refuse(codes.FailedPrecondition, ReasonMissingArtifact, "artifact %s is not in the store: upload it", digest)
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "%s %q does not exist", what, id)
}
