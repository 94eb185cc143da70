package frontend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Bounds holds the bounds of an open extent and, if known, its distribution.
type Bounds struct {
	Min, Max int64
	// Step divides the extent and all numbers here; zero means one.
	Step int64
	// Caps lists extents that get kernels of their own, which are tuned; with nil, the compiler chooses some, which
	// are not.
	Caps []int64
	// Frequencies maps extents to their frequency in any unit; nil if unknown.
	Frequencies map[int64]float64
}

// maxExtent limits an open extent.
const maxExtent = 1 << 24

// openExtents returns the open extents in the order of their names, with their symbols.
func (o Options) openExtents(m *onnx.Model) (extents []program.Extent, symbols []*extent.Symbol, err error) {
	for _, name := range slices.Sorted(maps.Keys(o.Open)) {
		b := o.Open[name]
		if b.Min < 0 || b.Max <= b.Min {
			return nil, nil, fmt.Errorf("%s cannot be in %d..%d: the bounds must be >= 0, the second one larger", name, b.Min, b.Max)
		}
		if b.Step < 0 || b.Min%b.step() != 0 || b.Max%b.step() != 0 {
			return nil, nil, fmt.Errorf("%s cannot be in %d..%d in steps of %d: the bounds must be multiples of the step", name, b.Min, b.Max, b.Step)
		}
		if b.Max > maxExtent {
			return nil, nil, fmt.Errorf("%s cannot be up to %d: memory is laid out for the most, which is %d at the largest", name, b.Max, maxExtent)
		}
		if _, fixed := o.Shapes[name]; fixed {
			return nil, nil, fmt.Errorf("%s is fixed and open at once", name)
		}
		if _, derived := o.Derived[name]; derived {
			return nil, nil, fmt.Errorf("%s is open and derived at once", name)
		}
		if slices.ContainsFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name }) {
			return nil, nil, fmt.Errorf("%s is an input: bounds are for the symbols of its open extents", name)
		}
		if err := b.check(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		extents = append(extents, program.Extent{Name: name, Min: b.Min / b.step(), Max: b.Max / b.step(), Step: b.step()})
		symbols = append(symbols, &extent.Symbol{Name: name, Min: b.Min, Max: b.Max, Step: b.step()})
	}
	given, err := choose(extents, o.Open)
	for k, e := range extents {
		extents[k].CapsGiven, symbols[k].Points = given, e.Points[len(e.Caps)]
	}
	return extents, symbols, err
}
