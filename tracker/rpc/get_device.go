package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// GetDevice implements tilthv1.DeviceServiceServer.
func (s *Services) GetDevice(ctx context.Context, req *tilthv1.GetDeviceRequest) (response *tilthv1.GetDeviceResponse, err error) {
	s.coordinator.Read(func(m *state.Machine) {
		var d *tilthv1.Device
		if d, _, err = m.Device(req.GetName()); err == nil {
			viewerOf(ctx).hideWork(m, d)
			response = &tilthv1.GetDeviceResponse{Device: d}
		}
	})
	return response, s.status(err)
}
