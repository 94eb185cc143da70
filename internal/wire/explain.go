package wire

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrUnreachable is wrapped by errors of calls that could not connect to a tracker.
var ErrUnreachable = errors.New("cannot be reached")

// Explain describes a failed attempt at the tracker at addr and its remedy, on one line, without gRPC's terms. The
// error wraps err, so that its status can still be read.
func Explain(addr, attempt string, err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Errorf("%s: %w", attempt, err)
	}
	switch s.Code() {
	case codes.Unavailable:
		if Reason(err) != "" { // a message of the tracker, not of the transport
			return fmt.Errorf("tracker %s: %w", addr, &callError{attempt: attempt, status: s, cause: err})
		}
		return fmt.Errorf("tracker %s %w%s", addr, ErrUnreachable, remedy(s.Message()))
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: tracker %s does not answer: check whether it is overloaded, and try again", attempt, addr)
	case codes.Unauthenticated:
		return fmt.Errorf("%s: tracker %s: %w", attempt, addr, &callError{attempt: "not authenticated", status: s, cause: err})
	case codes.Unimplemented:
		return fmt.Errorf("%s: tracker %s does not know this call: run the same version of tilth on both sides", attempt, addr)
	}
	return &callError{attempt: attempt, status: s, cause: err}
}

// Words returns the text of an error; for a status, the message alone.
func Words(err error) string {
	if s, ok := status.FromError(err); ok && err != nil {
		return s.Message()
	}
	return fmt.Sprint(err)
}

// remedy suggests why a connection could not be made, and what to do.
func remedy(message string) string {
	if strings.Contains(message, "resolver error") || strings.Contains(message, "lookup ") {
		return ": its host name is not known: check its spelling, and DNS"
	}
	if _, cause, is := strings.Cut(message, "tls: "); is {
		return fmt.Sprintf(" by TLS (%s): check that --tls-ca has its authority and that it trusts --tls-cert", strings.Trim(cause, `"`))
	}
	if strings.Contains(message, "while dialing") {
		return ": start it with 'tilth tracker', or name another with --tracker"
	}
	return ", it closed the connection: check that it is a running tracker and, if it uses TLS, name its authority with --tls-ca"
}

// callError is a refusal by the tracker.
type callError struct {
	attempt string
	status  *status.Status
	cause   error
}

func (e *callError) Error() string { return e.attempt + ": " + e.status.Message() }
func (e *callError) Unwrap() error { return e.cause }
