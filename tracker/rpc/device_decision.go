package rpc

import (
	"context"

	"github.com/tilth-dev/tilth/internal/access"
)

// decision is a request that changes a device's state.
type decision interface {
	GetBy() string
	GetReason() string
}

// who returns the caller's authenticated name or, on a tracker without authentication, the name given in the request.
func who(ctx context.Context, said decision) string {
	if id, ok := access.From(ctx); ok {
		return id.Name
	}
	return said.GetBy()
}
