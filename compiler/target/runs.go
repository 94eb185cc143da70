package target

import "fmt"

// Lacks returns the features that code for the target requires and a machine does not have.
func (t *Target) Lacks(machine *Target) (missing []string) { return machine.Missing(t.CPU.Features) }

// Missing returns those of the features, by compiler names, that the target's processor lacks.
func (t *Target) Missing(features []string) (missing []string) {
	for _, f := range features {
		if !t.CPU.Has(f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// RunsOn returns an error if code for the target cannot run on a machine.
func (t *Target) RunsOn(machine *Target) error {
	c, has := t.CPU, machine.CPU
	if c.Arch != has.Arch {
		return fmt.Errorf("target %s/%s cannot run on this %s machine", c.Arch, c.Model, has.Arch)
	}
	if missing := t.Lacks(machine); len(missing) > 0 {
		if c.Arch == RISCV && missing[0] == "v" {
			return fmt.Errorf("target %s/%s has vectors (v), which this CPU (%s) or its kernel does not have: --target sifive-u74 has none, and native has what there is",
				c.Arch, c.Model, has.Model)
		}
		if bytes := c.sveBytes(); sveLengths[missing[0]] > 0 && has.Has("sve") {
			return fmt.Errorf("target %s/%s needs SVE registers of %d bits, and this process has others on this CPU (%s): --target native has their length",
				c.Arch, c.Model, 8*bytes, has.Model)
		}
		return fmt.Errorf("target %s/%s needs %s, which this CPU (%s) does not have", c.Arch, c.Model, missing[0], has.Model)
	}
	return nil
}
