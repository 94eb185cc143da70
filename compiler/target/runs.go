package target

import "fmt"

// RunsOn says why code for the target cannot run on a machine; nil when it can.
func (t *Target) RunsOn(machine *Target) error {
	c, has := t.CPU, machine.CPU
	if c.Arch != has.Arch {
		return fmt.Errorf("target %s/%s cannot run on this %s machine", c.Arch, c.Model, has.Arch)
	}
	for _, f := range c.Features {
		if !has.Has(f) {
			return fmt.Errorf("target %s/%s needs %s, which this CPU (%s) does not have", c.Arch, c.Model, f, has.Model)
		}
	}
	return nil
}
