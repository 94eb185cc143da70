package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Cordon stops work for a device: for duration or, if that is 0, until it is uncordoned.
func (c *Change) Cordon(name, by, reason string, duration time.Duration) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		c.changeDevice(d, by, reason, func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: reason, Since: c.now(), Until: c.after(duration)}
		})
	})
}

// Uncordon makes a device available again.
func (c *Change) Uncordon(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		if d.cordon != nil {
			c.changeDevice(d, by, reason, func() { d.cordon = nil })
		}
	})
}

// Drain cordons a device and lets it finish its leases. A repeated call with the same arguments changes nothing.
func (c *Change) Drain(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		if o := d.cordon; o != nil && o.GetUntil() == nil && o.GetBy() == by && o.GetReason() == reason &&
			(o.GetDraining() || len(c.agents[d.name].leases) == 0) {
			return
		}
		c.changeDevice(d, by, reason, func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: reason, Since: c.now(), Draining: len(c.agents[d.name].leases) > 0}
		})
	})
}

// decide runs step on a device and returns the device's new state.
func (c *Change) decide(name string, step func(d *device)) (*tilthv1.Device, error) {
	d, err := c.deviceOf(name)
	if err != nil {
		return nil, err
	}
	step(d)
	return c.describe(d), nil
}
