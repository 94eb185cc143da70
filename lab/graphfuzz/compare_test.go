package graphfuzz

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Compare returns an error if outputs differ by more than rounding explains. The tolerance of floats is relative to
// the tensor's largest element, because of cancellation, and does not apply to exact outputs.
func (c *Case) Compare(got, want map[string]*array.Array, tolerance float64) error {
	for _, o := range c.Model.Graph.Outputs {
		if got[o.Name] == nil || want[o.Name] == nil && !c.Unlike[o.Name] {
			return fmt.Errorf("output %q is missing", o.Name)
		}
	}
	for name, w := range want {
		g := got[name]
		if g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
			return fmt.Errorf("output %q is %v%v, not %v%v", name, g.DType, g.Shape, w.DType, w.Shape)
		}
		most := 0.0
		if w.DType.IsFloat() && !c.Exact[name] {
			most = tolerance * scale(w)
		}
		for i := range w.Len() {
			a, b := g.Float(i), w.Float(i)
			if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= most {
				continue
			}
			return fmt.Errorf("element %d of output %q %v%v is %g, not %g", i, name, w.DType, w.Shape, a, b)
		}
	}
	return nil
}

// scale returns the magnitude of an array's largest finite element, and at least one.
func scale(a *array.Array) float64 {
	largest := 1.0
	for i := range a.Len() {
		if v := math.Abs(a.Float(i)); !math.IsInf(v, 0) && v > largest {
			largest = v
		}
	}
	return largest
}
