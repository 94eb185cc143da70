package farm

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/target"
)

// RunsOn says why kernels for a target cannot be measured on a machine; nil when they can.
func RunsOn(t, machine *target.Target) error {
	if err := t.RunsOn(machine); err != nil {
		return fmt.Errorf("%w: name a farm with such a device (--tracker ADDR)", err)
	}
	return nil
}
