package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// DrainDevice implements tilthv1.DeviceServiceServer.
func (s *Services) DrainDevice(ctx context.Context, req *tilthv1.DrainDeviceRequest) (*tilthv1.DrainDeviceResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	by := who(ctx, req)
	_, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) { return c.Drain(req.GetName(), by, req.GetReason()) })
	if err != nil {
		return nil, err
	}
	out, err := s.awaitDrain(ctx, req.GetName(), wait)
	return &tilthv1.DrainDeviceResponse{Device: out}, err
}

// awaitDrain waits until the device is drained or the wait is over.
func (s *Services) awaitDrain(ctx context.Context, name string, wait time.Duration) (*tilthv1.Device, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := wait == 0; ; {
		var out *tilthv1.Device
		var changed <-chan struct{}
		var err error
		s.coordinator.Read(func(m *state.Machine) { out, changed, err = m.Device(name) })
		if err != nil { // forgotten in the meantime
			return nil, s.status(err)
		}
		if over || out.GetState() != tilthv1.DeviceState_DEVICE_STATE_DRAINING {
			return out, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-s.coordinator.Closing():
			over = true
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}
