package state

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// irreplaceable says whether no other device that is given work offers one of the device's classes: a quarantine would
// stop all work of that class, and measurements with a warning are worth more than none.
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

// offeredBeside says whether another agent that is given work offers a class.
func (c *Change) offeredBeside(a *agent, class class) bool {
	for other := range c.queue(class).offering {
		if other != a && other.device.ready() {
			return true
		}
	}
	return false
}

// warn says that a device does not measure as it should and is given work all the same. The history tells it once: its
// figures change with each calibration.
func (c *Change) warn(d *device, reason string) {
	w := &tilthv1.DeviceWarning{Reason: reason, Since: c.now()}
	if d.warning != nil {
		d.warning, w.Since = w, d.warning.GetSince()
		c.write.PutDevice(d.name, d.row())
		return
	}
	c.tell(Warned)
	c.changeDevice(d, "", reason+"; as the only device of its class it is given work all the same", func() {
		d.quarantine, d.warning = nil, w
	})
}
