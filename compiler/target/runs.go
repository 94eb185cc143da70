package target

import "fmt"

// RunsOn says why code for the target cannot run on a machine; nil when it can.
func (t *Target) RunsOn(machine *Target) error {
	if t.Arch != machine.Arch {
		return fmt.Errorf("target %s/%s cannot run on this %s machine", t.Arch, t.CPU, machine.Arch)
	}
	for _, f := range t.Features {
		if !machine.Has(f) {
			return fmt.Errorf("target %s/%s needs %s, which this CPU (%s) does not have", t.Arch, t.CPU, f, machine.CPU)
		}
	}
	return nil
}
