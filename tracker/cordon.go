package tracker

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// CordonDevice implements tilthv1.DeviceServiceServer.
func (t *Tracker) CordonDevice(ctx context.Context, req *tilthv1.CordonDeviceRequest) (*tilthv1.CordonDeviceResponse, error) {
	duration := req.GetDuration().AsDuration()
	if req.GetDuration() != nil && (!req.GetDuration().IsValid() || duration <= 0) {
		return nil, invalid("duration", "is %v, not more than 0; leave it out for no end", duration)
	}
	by := who(ctx, req)
	out, err := t.decide(ctx, req.GetName(), func(c *change, d *device) {
		c.changeDevice(d, by, req.GetReason(), func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: req.GetReason(), Since: c.now(), Until: c.after(duration)}
		})
	})
	return &tilthv1.CordonDeviceResponse{Device: out}, err
}

// UncordonDevice implements tilthv1.DeviceServiceServer.
func (t *Tracker) UncordonDevice(ctx context.Context, req *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error) {
	by := who(ctx, req)
	out, err := t.decide(ctx, req.GetName(), func(c *change, d *device) {
		if d.cordon != nil {
			c.changeDevice(d, by, req.GetReason(), func() { d.cordon = nil })
		}
	})
	return &tilthv1.UncordonDeviceResponse{Device: out}, err
}

// DrainDevice implements tilthv1.DeviceServiceServer.
func (t *Tracker) DrainDevice(ctx context.Context, req *tilthv1.DrainDeviceRequest) (*tilthv1.DrainDeviceResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	by := who(ctx, req)
	_, err := t.decide(ctx, req.GetName(), func(c *change, d *device) {
		if o := d.cordon; o != nil && o.GetUntil() == nil && o.GetBy() == by && o.GetReason() == req.GetReason() &&
			(o.GetDraining() || len(c.agents[d.name].leases) == 0) {
			return // who asks again only goes on waiting
		}
		c.changeDevice(d, by, req.GetReason(), func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: req.GetReason(), Since: c.now(), Draining: len(c.agents[d.name].leases) > 0}
		})
	})
	if err != nil {
		return nil, err
	}
	out, err := t.awaitDrain(ctx, req.GetName(), wait)
	return &tilthv1.DrainDeviceResponse{Device: out}, err
}

// awaitDrain returns when the device is drained, or the time to wait is over.
func (t *Tracker) awaitDrain(ctx context.Context, name string, wait time.Duration) (*tilthv1.Device, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := wait == 0; ; {
		t.mu.Lock()
		d, err := t.deviceOf(name)
		if err != nil { // forgotten meanwhile
			t.mu.Unlock()
			return nil, err
		}
		out, changed := t.describe(d), d.changed
		t.mu.Unlock()
		if over || out.GetState() != tilthv1.DeviceState_DEVICE_STATE_DRAINING {
			return out, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-t.closing:
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

// decide runs a step on a device and returns it as it is then.
func (t *Tracker) decide(ctx context.Context, name string, step func(c *change, d *device)) (out *tilthv1.Device, err error) {
	err = t.update(ctx, func(c *change) error {
		d, err := c.deviceOf(name)
		if err != nil {
			return err
		}
		step(c, d)
		out = c.describe(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
