package farm

import (
	"context"
	"errors"
	"log/slog"
)

// untilFailure is the log of a farm in one process. It ends when one of the services fails: the failure is an error,
// and what the others would say until they have stopped follows from it.
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
