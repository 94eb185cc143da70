package cost

import "testing"

// TestQuotientsOfParts checks that a part of an axis between multiples of the divisor has one quotient and as many
// remainders as values. A part that does not fit crosses a multiple sometimes, and lowering computes both sides of
// it.
func TestQuotientsOfParts(t *testing.T) {
	for _, c := range []struct {
		name         string
		by, values   float64
		rest         bool
		span, region float64
	}{
		{"one value", 28, 1, false, 0, 0},
		{"a quarter", 28, 7, false, 0, 0},
		{"all", 28, 28, false, 0, 0},
		{"three times all", 28, 84, false, 2, 2},
		{"a part that does not fit", 28, 8, false, 0.25, 1},
		{"more than all, not whole", 28, 43, false, 1.5, 2},
		{"rest of one value", 28, 1, true, 0, 0},
		{"rests of a quarter", 28, 7, true, 6, 6},
		{"rests of a part that does not fit", 28, 8, true, 7, 27},
		{"rests of three times all", 28, 84, true, 27, 27},
	} {
		q := quotient{scale: 10, row: []float64{0, 1}, by: c.by, rest: c.rest}
		if span, region := q.span([]float64{5, c.values}), q.region([]float64{5, c.values}); span != 10*c.span || region != 10*c.region {
			t.Errorf("%s: it moves by %g, and by %g where it is computed, want %g and %g", c.name, span/10, region/10, c.span, c.region)
		}
	}
}
