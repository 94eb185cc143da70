package rpc

import (
	"context"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
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

// decide changes a device with step and returns its new state.
func (s *Services) decide(ctx context.Context, step func(c *state.Change) (*tilthv1.Device, error)) (out *tilthv1.Device, err error) {
	err = s.tryUpdate(ctx, func(c *state.Change) (err error) {
		out, err = step(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
