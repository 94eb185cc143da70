package state

import (
	"slices"
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

// irreplaceable reports whether the device is the only available one for any of its classes. Quarantining it would
// stop all work of that class, and measurements with a warning are better than none.
func (c *Change) irreplaceable(d *device) bool {
	a := c.agents[d.name]
	if a == nil || a.gone {
		return false
	}
	return slices.ContainsFunc(a.offers, func(class class) bool { return !class.runs && !c.offeredBeside(a, class) })
}

// offeredBeside reports whether another available agent offers the class.
func (c *Change) offeredBeside(a *agent, class class) bool {
	for other := range c.queue(class).offering {
		if other != a && other.device.ready() {
			return true
		}
	}
	return false
}

// warn marks a device as measuring poorly while it keeps getting work. Only the first warning enters the history,
// since the figures change with each calibration.
func (c *Change) warn(d *device, reason string) {
	w := &tilthv1.DeviceWarning{Reason: reason, Since: c.now()}
	if d.warning != nil {
		d.warning, w.Since = w, d.warning.GetSince()
		c.write.PutDevice(d.name, d.row())
		return
	}
	c.addFact(Warned)
	c.changeDevice(d, "", reason+"; as the only device of its class it is given work all the same", func() {
		d.quarantine, d.warning = nil, w
	})
}
