package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Cordon keeps work from a device, for a while or, when duration is 0, until it is uncordoned.
func (c *Change) Cordon(name, by, reason string, duration time.Duration) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		c.changeDevice(d, by, reason, func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: reason, Since: c.now(), Until: c.after(duration)}
		})
	})
}

// Uncordon gives work to a device again.
func (c *Change) Uncordon(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		if d.cordon != nil {
			c.changeDevice(d, by, reason, func() { d.cordon = nil })
		}
	})
}

// Drain keeps work from a device and lets it finish what it has. Who asks again only goes on waiting.
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

// decide runs a step on a device and returns it as it is then.
func (c *Change) decide(name string, step func(d *device)) (*tilthv1.Device, error) {
	d, err := c.deviceOf(name)
	if err != nil {
		return nil, err
	}
	step(d)
	return c.describe(d), nil
}
