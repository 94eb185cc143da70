package accuracy

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Relative is the largest difference of an element from the wanted one, relative to the largest that is wanted; of
// integers and bools, the share of elements that differ. It is infinite where the types differ, or only one of two
// elements is finite. NaN equals NaN.
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
	return worst / largest // infinite where all should be zero
}

// differing is the share of integers that differ.
func differing(got, want *array.Array) float64 {
	n := 0
	for i := range want.Len() {
		if got.Int(i) != want.Int(i) {
			n++
		}
	}
	return float64(n) / float64(max(1, want.Len()))
}

// Zeros reports whether all elements are zero: errors relative to the largest of them have no size then.
func Zeros(a *array.Array) bool {
	for i := range a.Len() {
		if a.Float(i) != 0 {
			return false
		}
	}
	return true
}

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
