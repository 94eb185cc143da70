package farm

import (
	"context"
	"errors"
	"log/slog"
)

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
