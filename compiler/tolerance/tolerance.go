package tolerance

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Tolerance is the allowed error of output elements, relative to the largest element of the reference. It depends
// on the types of a workload's tensors and the lengths of its sums, and applies to any device.
type Tolerance struct {
	// Sums covers the rounding of float32 and float64, mainly in sums. It is larger for schedules with algorithms
	// other than direct sums.
	Sums float64
	// Rounding covers elements that both the candidate and the reference round to 16 bits or to integers: differences
	// in the last bits before rounding may give neighbouring results. It is 0 for integers that are computed exactly.
	Rounding float64
}

const (
	// LargestTolerance is the largest error allowed to any candidate, regardless of its algorithm: zeros in place
	// of outputs, which have an error of 1, are never accepted.
	LargestTolerance = 0.25
	// MaxGrowth limits the factor by which an algorithm may extend the tolerance of direct sums. bfloat16 products
	// need this much.
	MaxGrowth = 1 << 12
	// OfFactors is the part of a float32 sum's tolerance for its terms, independent of their number: errors of
	// rounded factors have this size, times the algorithm's growth.
	OfFactors = 64 * 0x1p-24
)

// Times returns the tolerance of a candidate with the given error growth relative to direct sums, see
// schedule.Schedule.ErrorGrowth.
func (o Tolerance) Times(growth float64) float64 {
	return min(o.Sums*min(max(growth, 1), MaxGrowth)+o.Rounding, LargestTolerance)
}

// integerSteps is the allowed difference of an integer that was rounded from slightly different floats: one step if
// they were on either side of a half, and another one if the result is rounded again.
const integerSteps = 2

// OfIntegers returns the relative tolerance of an integer output with the given largest element: zero for direct
// sums of integers, which are exact, and a few steps for integers rounded from sums in floating point.
func (o Tolerance) OfIntegers(growth, largest float64) float64 {
	if growth <= 1 && o.Rounding == 0 || largest == 0 {
		return 0
	}
	return min(max(integerSteps/largest, max(o.Sums, OfFactors)*min(max(growth, 1), MaxGrowth), o.Rounding), LargestTolerance)
}

// Tolerances returns the tolerance of each output of a workload. Rounding errors of a sum grow with the square root
// of its length, and so does the tolerance. If only bounded functions of the sum reach an output, such as the
// hyperbolic tangent, the sum's size counts as well, which the output does not show.
func Tolerances(w *expr.Workload) []Tolerance {
	list := make([]Tolerance, len(w.Outputs))
	for k, t := range w.Outputs {
		list[k] = of(t)
	}
	return list
}

// ArgTolerances returns the tolerance of each argument of a workload, zero for those that are not outputs.
func ArgTolerances(w *expr.Workload) []Tolerance {
	return append(make([]Tolerance, len(w.Inputs)+len(w.Constants)), Tolerances(w)...)
}

const (
	// neighbours is the allowed difference of 16-bit results in units of the rounding error: one unit in the last
	// place is two of those, and the other two cover results whose unrounded values differ more.
	neighbours = 4
	// handedOn is the same for results that depend on such an element: sums of many accumulate errors like terms,
	// and terms may be larger than their sum.
	handedOn = 4 * neighbours
)

// of returns the tolerance of an output by examining its stages.
func of(out *expr.Tensor) Tolerance {
	terms, unit, stores, squares := 1.0, 0.0, 0.0, 0.0
	for _, t := range stagesOf(out) {
		terms, unit = max(terms, termsOf(t)), max(unit, unitOf(t))
		count, u := roundings(t.Body)
		if here := stored(t.Body); t == out && here > 0 {
			count, stores = count-here, neighbours*Roundoff(t.DType)
		}
		squares += float64(count) * u * u
		if out.DType.IsInt() && t.DType.IsFloat() && adds(t) {
			squares = max(squares, Roundoff(t.DType)*Roundoff(t.DType)) // sums in another order
		}
	}
	sums := unit * (64 + 4*math.Sqrt(terms))
	if free, held := (sumsOf{}).stage(out); held > free {
		sums *= math.Sqrt(held)
	}
	return Tolerance{Sums: sums, Rounding: stores + handedOn*math.Sqrt(squares)}
}

// bounded lists the functions whose results do not grow with their arguments, as those of exp do not in a softmax. The
// error of such an argument counts in full, however small the result is beside it.
var bounded = []expr.UnaryOp{expr.Tanh, expr.Erf, expr.Exp, expr.Sin, expr.Cos, expr.Atan}

// sumsOf holds, by stage, the number of terms of the longest sum on which it depends: one with which it grows, and one
// that a bounded function holds. A sum of n terms is about as large as the root of n of them.
type sumsOf map[*expr.Tensor][2]float64

func (s sumsOf) stage(t *expr.Tensor) (free, held float64) {
	if known, ok := s[t]; ok {
		return known[0], known[1]
	}
	free, held = s.value(t.Body)
	if t.Combiner == expr.Sum {
		free = max(free, termsOf(t))
	}
	s[t] = [2]float64{free, held}
	return free, held
}

func (s sumsOf) value(e expr.Expr) (free, held float64) {
	if l, ok := e.(*expr.Load); ok {
		if l.Tensor.Role != expr.Computed {
			return 0, 0
		}
		return s.stage(l.Tensor)
	}
	expr.Children(e, func(x expr.Expr) {
		f, h := s.value(x)
		free, held = max(free, f), max(held, h)
	})
	if n, ok := e.(*expr.Unary); ok && slices.Contains(bounded, n.Op) {
		return 0, max(free, held)
	}
	return free, held
}

// termsOf returns the number of terms of a reduction.
func termsOf(t *expr.Tensor) float64 {
	n := 1.0
	for _, r := range t.Reduce {
		n *= float64(r.Extent)
	}
	return n
}

// unitOf returns the rounding error of a stage: that of each step if it accumulates in 16 bits, and otherwise that
// of float32, from which results are rounded once.
func unitOf(t *expr.Tensor) float64 {
	if isNarrow(t.DType) && !adds(t) {
		return Roundoff(array.Float32)
	}
	return Roundoff(t.DType)
}

// stagesOf returns an output and the stages that it depends on.
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
