package services

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/internal/wire"
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
	out, err := s.decide(ctx, func(c *state.Change) (*tilthv1.Device, error) {
		return c.Cordon(req.GetName(), by, req.GetReason(), duration)
	})
	return &tilthv1.CordonDeviceResponse{Device: out}, err
}

// UncordonDevice implements tilthv1.DeviceServiceServer.
func (s *Services) UncordonDevice(ctx context.Context, req *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error) {
	by := who(ctx, req)
	out, err := s.decide(ctx, func(c *state.Change) (*tilthv1.Device, error) { return c.Uncordon(req.GetName(), by, req.GetReason()) })
	return &tilthv1.UncordonDeviceResponse{Device: out}, err
}

// DrainDevice implements tilthv1.DeviceServiceServer.
func (s *Services) DrainDevice(ctx context.Context, req *tilthv1.DrainDeviceRequest) (*tilthv1.DrainDeviceResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	by := who(ctx, req)
	_, err := s.decide(ctx, func(c *state.Change) (*tilthv1.Device, error) { return c.Drain(req.GetName(), by, req.GetReason()) })
	if err != nil {
		return nil, err
	}
	out, err := s.awaitDrain(ctx, req.GetName(), wait)
	return &tilthv1.DrainDeviceResponse{Device: out}, err
}

// awaitDrain returns when the device is drained, or the time to wait is over.
func (s *Services) awaitDrain(ctx context.Context, name string, wait time.Duration) (*tilthv1.Device, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := wait == 0; ; {
		var out *tilthv1.Device
		var changed <-chan struct{}
		var err error
		s.engine.Read(func(m *state.Machine) { out, changed, err = m.Device(name) })
		if err != nil { // forgotten meanwhile
			return nil, s.status(err)
		}
		if over || out.GetState() != tilthv1.DeviceState_DEVICE_STATE_DRAINING {
			return out, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-s.engine.Closing():
			over = true
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// decision is a request that changes a device's state.
type decision interface {
	GetBy() string
	GetReason() string
}

// who is the authenticated name of the caller, or, on a tracker that asks nobody who they are, the one that the caller
// gives.
func who(ctx context.Context, said decision) string {
	if id, ok := access.From(ctx); ok {
		return id.Name
	}
	return said.GetBy()
}

// decide has something decided of a device, and returns it as it is then.
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
