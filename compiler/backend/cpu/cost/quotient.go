package cost

import (
	"math"
	"slices"
)

// quotient is a part of an index that is a sum of axes divided by a number, or the rest of the division.
type quotient struct {
	// dim is the dimension that it is an index of, scale what it is multiplied by.
	dim   int
	scale float64
	// row has the coefficient of each axis in the sum.
	row []float64
	by  float64
	// rest is set where it is what the division leaves.
	rest bool
}

// span is how far it gets on average while each axis runs over so many values.
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

// region is how far lowering takes it to get: values that need not lie between two multiples of the divisor are taken
// to lie around one, so that all rests are among them.
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

// aligned reports whether so many values are parts between multiples of the divisor, or between some of them: parts of
// an axis are taken to begin at multiples of themselves, as those of a split do.
func (q *quotient) aligned(values float64) bool {
	return math.Mod(values, q.by) == 0 || math.Mod(q.by, values) == 0
}

// coefficient is how far it moves on average between neighbouring values of an axis.
func (q *quotient) coefficient(axis int) float64 {
	if q.rest {
		return q.scale * q.row[axis]
	}
	return q.scale * q.row[axis] / q.by
}

// alike reports whether two accesses move by the same quotients.
func alike(a, b []quotient) bool {
	return len(a) == len(b) && slices.EqualFunc(a, b, func(x, y quotient) bool {
		return x.dim == y.dim && x.scale == y.scale && x.by == y.by && x.rest == y.rest && slices.Equal(x.row, y.row)
	})
}
