package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ListDevices implements tilthv1.DeviceServiceServer. Devices are sorted by name.
func (s *Services) ListDevices(ctx context.Context, req *tilthv1.ListDevicesRequest) (*tilthv1.ListDevicesResponse, error) {
	v := viewerOf(ctx)
	devices, next, err := page(s, (*state.Machine).DeviceNames, req, func(m *state.Machine, name string) (*tilthv1.Device, bool) {
		d, _, err := m.Device(name)
		if c := d.GetCalibration(); c != nil {
			c.Course = nil // it would dominate a long listing
		}
		v.hideWork(m, d)
		return d, err == nil
	})
	return &tilthv1.ListDevicesResponse{Devices: devices, NextPageToken: next}, err
}
