package tracker

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListDevices implements tilthv1.DeviceServiceServer; devices come by name.
func (t *Tracker) ListDevices(_ context.Context, req *tilthv1.ListDevicesRequest) (*tilthv1.ListDevicesResponse, error) {
	devices, next, err := page(t, t.devices, req, func(name string, d *device) (*tilthv1.Device, bool) {
		if _, err := t.deviceOf(name); err != nil {
			return nil, false
		}
		return t.describe(d), true
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ListDevicesResponse{Devices: devices, NextPageToken: next}, nil
}

// GetDevice implements tilthv1.DeviceServiceServer.
func (t *Tracker) GetDevice(_ context.Context, req *tilthv1.GetDeviceRequest) (*tilthv1.GetDeviceResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, err := t.deviceOf(req.GetName())
	if err != nil {
		return nil, err
	}
	return &tilthv1.GetDeviceResponse{Device: t.describe(d)}, nil
}
