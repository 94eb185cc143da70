package farm

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/records"
)

// unreachableService returns the unreachable service that caused an error, in words that do not reveal its location,
// or nil.
func unreachableService(err error) error {
	for _, of := range []error{records.ErrAway, artifact.ErrAway} {
		if errors.Is(err, of) {
			return of
		}
	}
	return nil
}

// isUnreachable reports whether an error means that a server is unreachable.
func isUnreachable(err error) bool { return unreachableService(err) != nil }

// isTransient reports whether an error of a store is transient. Until the process has served or stood by, its address
// may be wrong. Later, all errors of opening are transient, except those caused by changes to the database.
func isTransient(err error, began, opening bool) bool {
	if !began {
		return isUnreachable(err) && !s3.WrongAddress(err) || errors.Is(err, records.ErrInUse)
	}
	return opening && isRetryable(err) || isUnreachable(err)
}

// isRetryable reports whether an error of opening a store, after the process has begun, is worth a retry: the
// database was unreachable. All other errors come from changes to the database meanwhile.
func isRetryable(err error) bool {
	return !errors.Is(err, records.ErrShards) && !errors.Is(err, records.ErrVersion) && !errors.Is(err, records.ErrUnfinished)
}

// untilFailure is the log handler of a single-process farm. It is silent after a service failed: the failure
// is returned as an error, and the messages of the other services while they stop are consequences of it.
type untilFailure struct {
	slog.Handler
	life context.Context
}

// Enabled implements slog.Handler.
func (h untilFailure) Enabled(ctx context.Context, level slog.Level) bool {
	cause := context.Cause(h.life)
	return (cause == nil || errors.Is(cause, errStopped)) && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h untilFailure) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untilFailure{h.Handler.WithAttrs(attrs), h.life}
}

// WithGroup implements slog.Handler.
func (h untilFailure) WithGroup(name string) slog.Handler {
	return untilFailure{h.Handler.WithGroup(name), h.life}
}
