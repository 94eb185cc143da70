package cost

import (
	"math"
	"slices"
)

// quotient is a part of an index: a sum of axes divided by a number, or the remainder of that division.
type quotient struct {
	// dim is the dimension that it indexes, scale its factor.
	dim   int
	scale float64
	// row holds the coefficient of each axis in the sum.
	row []float64
	by  float64
	// rest is set for a remainder.
	rest bool
}

// span returns its average range while each axis runs over the given number of values.
func (q *quotient) span(axes []float64) float64 {
	far := span(q.row, axes)
	switch {
	case q.rest:
		far = min(far, q.by-1)
	case q.aligned(far + 1):
		far = max(1, (far+1)/q.by) - 1
	default:
		far /= q.by
	}
	return q.scale * far
}

// region returns its range according to lowering. Values that may straddle a multiple of the divisor are assumed to
// do so, so that all remainders are among them.
func (q *quotient) region(axes []float64) float64 {
	far := span(q.row, axes)
	switch {
	case far == 0 || q.aligned(far+1):
		return q.span(axes)
	case q.rest:
		return q.scale * (q.by - 1)
	}
	return q.scale * (math.Floor(far/q.by) + 1)
}

// aligned reports whether the given number of values forms parts between multiples of the divisor. Parts of an axis
// are assumed to start at multiples of their size, as those of a split do.
func (q *quotient) aligned(values float64) bool {
	return math.Mod(values, q.by) == 0 || math.Mod(q.by, values) == 0
}

// coefficient returns its average step between neighbouring values of an axis.
func (q *quotient) coefficient(axis int) float64 {
	if q.rest {
		return q.scale * q.row[axis]
	}
	return q.scale * q.row[axis] / q.by
}

// alike reports whether two accesses depend on the same quotients.
func alike(a, b []quotient) bool {
	return len(a) == len(b) && slices.EqualFunc(a, b, func(x, y quotient) bool {
		return x.dim == y.dim && x.scale == y.scale && x.by == y.by && x.rest == y.rest && slices.Equal(x.row, y.row)
	})
}
