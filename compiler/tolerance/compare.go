package tolerance

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Relative returns the largest difference of an element from the expected one, relative to the largest expected
// one; for integers and bools, the share of elements that differ. It is infinite if the types differ, or if exactly
// one of two elements is finite. NaN equals NaN.
func Relative(got, want *array.Array) float64 {
	if got == nil || want == nil || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return math.Inf(1)
	}
	if !want.DType.IsFloat() {
		return differing(got, want)
	}
	largest, worst := 0.0, 0.0
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		if finite(w) {
			largest = max(largest, math.Abs(w))
		}
		switch {
		case g == w, math.IsNaN(g) && math.IsNaN(w):
		case !finite(g) || !finite(w):
			return math.Inf(1)
		default:
			worst = max(worst, math.Abs(g-w))
		}
	}
	if worst == 0 {
		return 0
	}
	return worst / largest // infinite if all should be zero
}

// differing returns the share of integers that differ.
func differing(got, want *array.Array) float64 {
	n := 0
	for i := range want.Len() {
		if got.Int(i) != want.Int(i) {
			n++
		}
	}
	return float64(n) / float64(max(1, want.Len()))
}

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
