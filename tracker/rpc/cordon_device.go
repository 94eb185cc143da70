package rpc

import (
	"context"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// CordonDevice implements tilthv1.DeviceServiceServer.
func (s *Services) CordonDevice(ctx context.Context, req *tilthv1.CordonDeviceRequest) (*tilthv1.CordonDeviceResponse, error) {
	duration := req.GetDuration().AsDuration()
	if req.GetDuration() != nil && (!req.GetDuration().IsValid() || duration <= 0) {
		return nil, invalid("duration", "is %v, not more than 0; leave it out for no end", duration)
	}
	by := who(ctx, req)
	out, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) {
		return c.Cordon(req.GetName(), by, req.GetReason(), duration)
	})
	return &tilthv1.CordonDeviceResponse{Device: out}, err
}

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
