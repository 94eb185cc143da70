package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// RecalibrateDevice implements tilthv1.DeviceServiceServer.
func (s *Services) RecalibrateDevice(ctx context.Context, req *tilthv1.RecalibrateDeviceRequest) (*tilthv1.RecalibrateDeviceResponse, error) {
	by := who(ctx, req)
	out, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) {
		return c.Recalibrate(req.GetName(), by, req.GetReason())
	})
	return &tilthv1.RecalibrateDeviceResponse{Device: out}, err
}
