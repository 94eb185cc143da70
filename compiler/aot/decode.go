package aot

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Continue sets the inputs of an execution that continues the last one. Inputs that outputs continue are omitted:
// they keep the values of these outputs. The others are as in SetInputs.
func (m *Model) Continue(inputs map[string]*array.Array) error {
	d := m.manifest.Decoding
	if d == nil {
		return fmt.Errorf("model %s: no output continues an input: set all inputs", m.manifest.Model)
	}
	if !m.executed {
		return fmt.Errorf("model %s: there is nothing to go on from: execute it after its inputs were set", m.manifest.Model)
	}
	after := map[string]int64{d.Past: m.extents[d.Past] + m.extents[d.Step]}
	if e := m.manifest.extent(d.Past); after[d.Past] > e.Max {
		return fmt.Errorf("model %s: it has %d positions, and the package was compiled for at most %d before those of an execution", m.manifest.Model, after[d.Past], e.Max)
	}
	for name, n := range m.extents {
		if name != d.Past {
			after[name] = n // a different step comes from the other inputs' shapes
		}
	}
	shapes := shapesOf(inputs)
	for _, t := range m.manifest.Inputs {
		if !m.manifest.isKept(t) {
			continue
		}
		if _, given := inputs[t.Name]; given {
			return fmt.Errorf("model %s: input %q comes from the last execution: omit it", m.manifest.Model, t.Name)
		}
		shapes[t.Name] = t.ShapeWith(after)
	}
	return m.set(inputs, shapes)
}

// isKept reports whether an output continues an input.
func (m *Manifest) isKept(t Tensor) bool {
	return slices.ContainsFunc(m.Outputs, func(o Tensor) bool { return o.Continues != "" && o.Continues == t.Name })
}

// Fresh returns the inputs that no output continues.
func (m *Manifest) Fresh() []Tensor { return slices.DeleteFunc(slices.Clone(m.Inputs), m.isKept) }

// VariesBy reports whether an axis of a tensor depends on the named extent.
func (t Tensor) VariesBy(extent string) bool {
	return slices.ContainsFunc(t.Varying, func(v Varying) bool { return v.Extent == extent })
}

// checkContinued rejects outputs that continue something other than an input, or an input that another output
// continues, and a decoder without its extents or without such an output.
func (m *Manifest) checkContinued() error {
	kept := map[string]bool{}
	for _, o := range m.Outputs {
		if o.Continues == "" {
			continue
		}
		k := slices.IndexFunc(m.Inputs, func(t Tensor) bool { return t.Name == o.Continues })
		if k < 0 || kept[o.Continues] || !slices.Equal(m.Inputs[k].Shape, o.Shape) || m.Inputs[k].DType != o.DType {
			return fmt.Errorf("output %q continues %q, which is not an input like it, or is continued by another", o.Name, o.Continues)
		}
		kept[o.Continues] = true
	}
	switch d := m.Decoding; {
	case d == nil:
	case m.extent(d.Past) == nil || m.extent(d.Step) == nil || d.Past == d.Step:
		return fmt.Errorf("decoding is by %q and %q, which are not two extents", d.Past, d.Step)
	case len(kept) == 0:
		return fmt.Errorf("decoding is by %q and %q, and no output continues an input", d.Past, d.Step)
	}
	return nil
}
