package farm

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/target"
)

// RunsOn says why kernels for a target cannot be measured on a machine; nil when they can.
func RunsOn(t, machine *target.Target) error {
	if t.Arch != machine.Arch {
		return fmt.Errorf("target %s/%s cannot run on this %s machine: name a farm with such a device (--tracker ADDR)", t.Arch, t.CPU, machine.Arch)
	}
	for _, f := range t.Features {
		if !machine.Has(f) {
			return fmt.Errorf("target %s/%s needs %s, which this CPU (%s) does not have: name a farm with such a device (--tracker ADDR)",
				t.Arch, t.CPU, f, machine.CPU)
		}
	}
	return nil
}
