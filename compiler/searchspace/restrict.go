package searchspace

import (
	"fmt"
	"slices"
)

// Restrict returns the part of the space in which the named knobs have only the given values. Points of the part have
// other indices than those of the whole, and the same text. The error names a knob or a value that the space lacks.
func (s *Space) Restrict(values map[string][]int64) (*Space, error) {
	part := *s
	part.base = nil
	part.Knobs = slices.Clone(s.Knobs)
	known := 0
	for k, knob := range s.Knobs {
		wanted, named := values[knob.Name]
		if !named {
			continue
		}
		known++
		if len(wanted) == 0 {
			return nil, fmt.Errorf("space: knob %s is left without a value: name at least one of %v", knob.Name, knob.Values)
		}
		for _, v := range wanted {
			if !slices.Contains(knob.Values, v) {
				return nil, fmt.Errorf("space: knob %s has no value %d: choose among %v", knob.Name, v, knob.Values)
			}
		}
		part.Knobs[k].Values = slices.DeleteFunc(slices.Clone(knob.Values), func(v int64) bool { return !slices.Contains(wanted, v) })
	}
	if known < len(values) {
		return nil, fmt.Errorf("space: %s", s.unknown(values))
	}
	return &part, nil
}

// KeepsTypes returns the part of the space that stores constants and inputs in their own types, transforms aside.
func (s *Space) KeepsTypes() *Space {
	part := *s
	part.base, part.Knobs = nil, slices.Clone(s.Knobs)
	for k, knob := range s.Knobs {
		part.Knobs[k].Values = slices.DeleteFunc(slices.Clone(knob.Values), func(v int64) bool { return slices.Contains(knob.Widens, v) })
	}
	return &part
}

// unknown returns the alphabetically first knob that the space lacks.
func (s *Space) unknown(values map[string][]int64) string {
	var names []string
	for name := range values {
		if !slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("there is no knob %s for this workload", names[0])
}
