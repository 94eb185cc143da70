package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Tolerance bounds the difference of an element from the expected w: Absolute + Relative * |w|.
type Tolerance struct{ Relative, Absolute float64 }

// ToleranceOf returns the tolerance for an element type: that of ONNX's own runner for float32 and float64, a few
// units in the last place for the 16-bit types, zero for integers and bools.
func ToleranceOf(d array.DType) Tolerance {
	switch d {
	case array.Float32, array.Float64:
		return Tolerance{1e-3, 1e-7}
	case array.Float16:
		return Tolerance{4e-3, 1e-4}
	case array.BFloat16:
		return Tolerance{2e-2, 1e-3}
	}
	return Tolerance{}
}

// compare returns the largest absolute difference of an element, and an error if type or shape differ or an element
// is outside the tolerance. For floating-point elements, the allowance rounded, relative to the largest element, is
// added. NaN equals NaN.
func compare(got, want *array.Array, rounded float64) (worst float64, err error) {
	tolerance := ToleranceOf(want.DType)
	if want.DType.IsFloat() {
		tolerance.Absolute += rounded * largest(want)
	}
	return tolerance.compare(got, want)
}

// compare is compare with another tolerance.
func (tolerance Tolerance) compare(got, want *array.Array) (worst float64, err error) {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return math.Inf(1), fmt.Errorf("it is %v%v, want %v%v", got.DType, got.Shape, want.DType, want.Shape)
	}
	wrong := 0
	for i := range want.Len() {
		d := difference(got, want, i)
		if d == 0 {
			continue
		}
		worst = max(worst, d)
		if d <= tolerance.Absolute+tolerance.Relative*math.Abs(want.Float(i)) && !math.IsInf(d, 0) {
			continue
		}
		if wrong++; wrong == 1 {
			err = fmt.Errorf("element %d of %v%v is %s, want %s", i, want.DType, want.Shape, element(got, i), element(want, i))
		}
	}
	if wrong > 1 {
		err = fmt.Errorf("%w, and %d more are wrong (worst error %.3g)", err, wrong-1, worst)
	}
	return worst, err
}

// largest returns the magnitude of the largest finite element.
func largest(a *array.Array) (magnitude float64) {
	for i := range a.Len() {
		if v := math.Abs(a.Float(i)); !math.IsInf(v, 0) && v > magnitude {
			magnitude = v
		}
	}
	return magnitude
}

// difference returns the distance of an element from the expected one: 0 if they are equal or both NaN, infinite if
// exactly one is NaN.
func difference(got, want *array.Array, i int64) float64 {
	if !want.DType.IsFloat() {
		g, w := got.Int(i), want.Int(i)
		if g == w {
			return 0
		}
		return math.Max(1, math.Abs(got.Float(i)-want.Float(i))) // large integers that differ may be equal as floats
	}
	g, w := got.Float(i), want.Float(i)
	switch {
	case g == w, math.IsNaN(g) && math.IsNaN(w):
		return 0
	case math.IsNaN(g), math.IsNaN(w):
		return math.Inf(1)
	}
	return math.Abs(g - w)
}

func element(a *array.Array, i int64) string {
	if a.DType.IsFloat() {
		return fmt.Sprintf("%g", a.Float(i))
	}
	if a.DType == array.Uint64 {
		return fmt.Sprint(uint64(a.Int(i)))
	}
	return fmt.Sprint(a.Int(i))
}
