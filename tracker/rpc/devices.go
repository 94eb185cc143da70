package rpc

import (
	"cmp"
	"context"
	"math"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// GetDevice implements tilthv1.DeviceServiceServer.
func (s *Services) GetDevice(ctx context.Context, req *tilthv1.GetDeviceRequest) (*tilthv1.GetDeviceResponse, error) {
	var d *tilthv1.Device
	var err error
	s.coordinator.Read(func(m *state.Machine) {
		d, _, err = m.Device(req.GetName())
		viewerOf(ctx).hideWork(m, d)
	})
	return &tilthv1.GetDeviceResponse{Device: d}, s.status(err)
}

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

// UncordonDevice implements tilthv1.DeviceServiceServer.
func (s *Services) UncordonDevice(ctx context.Context, req *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error) {
	by := who(ctx, req)
	out, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) { return c.Uncordon(req.GetName(), by, req.GetReason()) })
	return &tilthv1.UncordonDeviceResponse{Device: out}, err
}

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
	timer := time.After(wait)
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
		case <-timer:
			over = true
		case <-s.coordinator.Closing():
			over = true
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// RecalibrateDevice implements tilthv1.DeviceServiceServer.
func (s *Services) RecalibrateDevice(ctx context.Context, req *tilthv1.RecalibrateDeviceRequest) (*tilthv1.RecalibrateDeviceResponse, error) {
	by := who(ctx, req)
	out, err := result(ctx, s, func(c *state.Change) (*tilthv1.Device, error) {
		return c.Recalibrate(req.GetName(), by, req.GetReason())
	})
	return &tilthv1.RecalibrateDeviceResponse{Device: out}, err
}

// ReportCalibration implements tilthv1.DeviceServiceServer.
func (s *Services) ReportCalibration(ctx context.Context, req *tilthv1.ReportCalibrationRequest) (*tilthv1.ReportCalibrationResponse, error) {
	r := req.GetReport()
	if err := cmp.Or(checkName("report.kernels", r.GetKernels()),
		checkSamples("report.compute_seconds", r.GetComputeSeconds()), checkSamples("report.memory_seconds", r.GetMemorySeconds())); err != nil {
		return nil, err
	}
	err := s.tryUpdate(ctx, func(c *state.Change) error { return c.Calibrate(req.GetSession(), r) })
	return &tilthv1.ReportCalibrationResponse{}, err
}

func checkSamples(field string, samples []float64) error {
	if len(samples) == 0 {
		return invalid(field, "is empty")
	}
	for _, s := range samples {
		if !(s > 0) || math.IsInf(s, 1) {
			return invalid(field, "holds %v", s)
		}
	}
	return nil
}
