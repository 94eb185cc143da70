package accuracy

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
)

// Bound is how far outputs of a program may be from those of one in float32 with direct sums, relative to the largest
// element of each, for numerics that round factors of products; 0 when it rounds nothing. Each kernel adds what it
// rounds to 16 bits, once an element, and what its schedule's algorithm loses. Errors of elements are independent: a
// sum of n products is off by the root of n of them where it is the root of n products large, whatever n. Those of
// kernels that read one another add up in the same way. It is no proof: a kernel may subtract what is nearly equal.
func Bound(p *program.Program, made func(w *expr.Workload) (*schedule.Schedule, error)) (float64, error) {
	own := make([]float64, len(p.Tasks))
	for k, task := range p.Tasks {
		s, err := made(task.Workload)
		if err != nil {
			return 0, err
		}
		own[k] = ofKernel(s)
	}
	squares := map[int]float64{} // of the errors of values, by their roots
	for _, c := range p.Calls {
		w := p.Tasks[c.Task].Workload
		read, stored := c.Args[:len(c.Args)-len(w.Outputs)], c.Args[len(c.Args)-len(w.Outputs):]
		before := 0.0
		for _, v := range read {
			before = max(before, squares[p.Root(v)])
		}
		for _, v := range stored {
			squares[p.Root(v)] = max(squares[p.Root(v)], before+own[c.Task]*own[c.Task])
		}
	}
	worst := 0.0
	for _, v := range p.Outputs {
		worst = max(worst, squares[p.Root(v)])
	}
	return math.Sqrt(worst), nil
}

// sigmas is how many times its usual size an error may have: there are many of them, of which the largest counts.
const sigmas = 8

// ofKernel is what a kernel adds.
func ofKernel(s *schedule.Schedule) float64 {
	w := s.Workload
	square := 0.0
	for _, t := range slices.Concat(w.Constants, w.Stages) {
		u := tolerance.Roundoff(t.DType)
		if t.Role == expr.Constant && t.DType.IsFloat() && t.DType.Bytes() == 2 || t.Role == expr.Computed && tolerance.Rounds(t) {
			square += u * u
		}
	}
	sum := sigmas * math.Sqrt(square)
	if s.Numerics() == schedule.Fast {
		worst := 0.0
		for _, o := range tolerance.Of(w) {
			worst = max(worst, o.Sums*s.ErrorGrowth())
		}
		sum = math.Hypot(sum, worst)
	}
	return sum
}
