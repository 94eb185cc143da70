package tracker

import (
	"context"
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListDevices implements tilthv1.DeviceServiceServer.
func (t *Tracker) ListDevices(context.Context, *tilthv1.ListDevicesRequest) (*tilthv1.ListDevicesResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	response := &tilthv1.ListDevicesResponse{}
	for _, name := range slices.Sorted(maps.Keys(t.devices)) {
		if d, err := t.deviceOf(name); err == nil {
			response.Devices = append(response.Devices, t.describe(d))
		}
	}
	return response, nil
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
