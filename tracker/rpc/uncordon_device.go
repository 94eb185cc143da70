package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// UncordonDevice implements tilthv1.DeviceServiceServer.
func (s *Services) UncordonDevice(ctx context.Context, req *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error) {
	by := who(ctx, req)
	out, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) { return c.Uncordon(req.GetName(), by, req.GetReason()) })
	return &tilthv1.UncordonDeviceResponse{Device: out}, err
}
