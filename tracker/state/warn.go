package state

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// irreplaceable reports whether the device is the only available one for any of its classes. Quarantining it would
// stop all work of that class, and measurements with a warning are better than none.
func (c *Change) irreplaceable(d *device) bool {
	a := c.agents[d.name]
	if a == nil || a.gone {
		return false
	}
	for _, class := range a.offers {
		if !class.runs && !c.offeredBeside(a, class) {
			return true
		}
	}
	return false
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
