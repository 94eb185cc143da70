package codegen

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Tolerance is the largest difference from the reference that a candidate of w may have, relative to the output's
// largest value. Rounding errors of a sum grow with the square root of its length, so the bound does too. Results of
// 16 bits are rounded once behind sums in float32, by the candidate and by the reference: where the sums differ, that
// may be to neighbours. A schedule with another algorithm than the direct sum may differ by Growth times as much.
func Tolerance(w *expr.Workload) float64 {
	sums, stored := tolerances(w)
	return sums + stored
}

// Growth is how many times the tolerance of its workload the algorithms of a schedule need. Those of sums need
// Schedule.ErrorGrowth times theirs; results are rounded once all the same.
func Growth(s *schedule.Schedule) float64 {
	sums, stored := tolerances(s.Workload)
	if stored == 0 {
		return s.ErrorGrowth()
	}
	return (sums*s.ErrorGrowth() + stored) / (sums + stored)
}

// neighbours is how far apart results of 16 bits may be, by the rounding error of one: one unit in the last place is
// two of those, and there is another for results that differ by more than a rest.
const neighbours = 4

// tolerances are the parts for sums, and for rounding results of 16 bits. Where the kernel reads such a result again,
// differences grow as those of sums do.
func tolerances(w *expr.Workload) (sums, stored float64) {
	read := map[*expr.Tensor]bool{}
	for _, t := range w.Stages {
		for _, l := range expr.Loads(t.Body) {
			read[l.Tensor] = true
		}
	}
	terms, unit := 1.0, 0.0
	for _, t := range w.Stages {
		n := 1.0
		for _, r := range t.Reduce {
			n *= float64(r.Extent)
		}
		terms = max(terms, n)
		u := roundoff(t.DType)
		if t.DType.IsFloat() && t.DType.Bytes() == 2 && n == 1 && !read[t] {
			stored, u = max(stored, neighbours*u), roundoff(array.Float32)
		}
		unit = max(unit, u)
	}
	return unit * (64 + 4*math.Sqrt(terms)), stored
}

// roundoff is the relative rounding error of one operation.
func roundoff(d array.DType) float64 {
	switch d {
	case array.Float32:
		return 0x1p-24
	case array.Float64:
		return 0x1p-53
	case array.Float16:
		return 0x1p-11
	case array.BFloat16:
		return 0x1p-8
	default:
		return 0
	}
}
