// Tolerance says how far what a kernel computes may be from what its reference does, by the types of the
// workload's tensors and the lengths of its sums. Whoever verifies kernels asks here, on whatever device they run.
// Begin to read at tolerance.go.

package accuracy

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Tolerance is how far elements of an output may be from the reference's, relative to the largest of these.
type Tolerance struct {
	// Sums is for what float32 and float64 round, in sums above all. It is larger for schedules with other algorithms
	// than direct sums.
	Sums float64
	// Rounding is for elements that are rounded to 16 bits, by the candidate and by the reference: where what they
	// round differs in its last bits, that may be to neighbours.
	Rounding float64
}

const (
	// LargestTolerance is the largest error that is allowed to any candidate, whatever it says of its algorithm:
	// zeros in place of outputs, which have an error of 1, are never right.
	LargestTolerance = 0.25
	// MostGrowth bounds how many times the tolerance of direct sums an algorithm may claim to need. Products of
	// elements in bfloat16 need as much.
	MostGrowth = 1 << 12
	// OfFactors is what the tolerance of a sum in float32 has for its terms, however many: errors of factors that an
	// algorithm rounds are so large, times its growth.
	OfFactors = 64 * 0x1p-24
)

// Times is the tolerance of a candidate whose algorithms have errors so many times as large as direct sums have, see
// schedule.Schedule.ErrorGrowth.
func (o Tolerance) Times(growth float64) float64 {
	return min(o.Sums*min(max(growth, 1), MostGrowth)+o.Rounding, LargestTolerance)
}

// integerSteps is how many steps an integer may be from the reference's that was rounded from floats which differ a
// little: one where they were on either side of a half, and another where that is rounded once more.
const integerSteps = 2

// OfIntegers is the tolerance of an output of integers whose largest is given, relative to it: none for direct sums,
// which are exact, and a few steps for algorithms that compute sums of integers in floats.
func (o Tolerance) OfIntegers(growth, largest float64) float64 {
	if growth <= 1 || largest == 0 {
		return 0
	}
	return min(max(integerSteps/largest, max(o.Sums, OfFactors)*min(growth, MostGrowth)), LargestTolerance)
}

// Tolerances is the tolerance of each output of a workload. Rounding errors of a sum grow with the square root of
// its length, so the tolerance does too.
func Tolerances(w *expr.Workload) []Tolerance {
	list := make([]Tolerance, len(w.Outputs))
	for k, t := range w.Outputs {
		list[k] = of(t)
	}
	return list
}

// ArgTolerances is the tolerance of each argument of a workload; of those that are no outputs, none.
func ArgTolerances(w *expr.Workload) []Tolerance {
	return append(make([]Tolerance, len(w.Inputs)+len(w.Constants)), Tolerances(w)...)
}

const (
	// neighbours is how far apart results of 16 bits may be, by the rounding error of one: one unit in the last place
	// is two of those, and there is another for results that differ by more than a rest.
	neighbours = 4
	// handedOn is the same for results that depend on such an element: sums of many take errors as they take terms,
	// and what they are of may be larger than they.
	handedOn = 4 * neighbours
)

// of looks at the stages that an output is made of.
func of(out *expr.Tensor) Tolerance {
	terms, unit, stores, squares := 1.0, 0.0, 0.0, 0.0
	for _, t := range stagesOf(out) {
		n := 1.0
		for _, r := range t.Reduce {
			n *= float64(r.Extent)
		}
		terms, unit = max(terms, n), max(unit, unitOf(t))
		count, u := roundings(t.Body)
		if here := stored(t.Body); t == out && here > 0 {
			count, stores = count-here, neighbours*Roundoff(t.DType)
		}
		squares += float64(count) * u * u
	}
	return Tolerance{Sums: unit * (64 + 4*math.Sqrt(terms)), Rounding: stores + handedOn*math.Sqrt(squares)}
}

// unitOf is the rounding error of what a stage computes: of each step where it adds in 16 bits, and otherwise that of
// float32, from which results are rounded once.
func unitOf(t *expr.Tensor) float64 {
	if isNarrow(t.DType) && !adds(t) {
		return Roundoff(array.Float32)
	}
	return Roundoff(t.DType)
}

// stagesOf are an output and the stages that it is computed from.
func stagesOf(out *expr.Tensor) (list []*expr.Tensor) {
	seen := map[*expr.Tensor]bool{}
	var visit func(t *expr.Tensor)
	visit = func(t *expr.Tensor) {
		if seen[t] || t.Role != expr.Computed {
			return
		}
		seen[t] = true
		list = append(list, t)
		for _, l := range expr.Loads(t.Body) {
			visit(l.Tensor)
		}
	}
	visit(out)
	return list
}
