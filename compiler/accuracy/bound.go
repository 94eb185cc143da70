package accuracy

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Largest is the largest bound: outputs that are further off are wrong, whatever numerics may round.
const Largest = 0.1

// Bound is how far outputs of a program may be from those of one in float32 with direct sums, relative to the largest
// element of each, for numerics that round factors of products; 0 when it rounds nothing. It follows the errors of
// elements through all kernels: what is rounded to 16 bits adds one rounding, and a schedule's algorithm what it
// loses. Errors are independent. A sum of n terms is off by the root of n of their errors where it is the root of n
// terms large, so it is off by as much as a term, whatever n; a product, or a quotient, is off by as much as both of
// its operands. It is no proof: a kernel may subtract what is nearly equal.
func Bound(p *program.Program, made func(w *expr.Workload) (*schedule.Schedule, error)) (float64, error) {
	schedules := make([]*schedule.Schedule, len(p.Tasks))
	for k, task := range p.Tasks {
		s, err := made(task.Workload)
		if err != nil {
			return 0, err
		}
		schedules[k] = s
	}
	squares := map[int]float64{} // of the errors of values, by their roots
	for _, c := range p.Calls {
		w := p.Tasks[c.Task].Workload
		k := kernelErrors{}
		for i, t := range slices.Concat(w.Inputs, w.Constants) {
			k[t] = squares[p.Root(c.Args[i])]
			if t.Role == expr.Constant {
				k[t] += rounding(t)
			}
		}
		for i, v := range c.Args[len(c.Args)-len(w.Outputs):] {
			squares[p.Root(v)] = max(squares[p.Root(v)], k.of(w.Outputs[i])+lost(schedules[c.Task]))
		}
	}
	worst := 0.0
	for _, v := range p.Outputs {
		worst = max(worst, squares[p.Root(v)])
	}
	return min(math.Sqrt(worst), Largest), nil
}

// sigmas is how many times its usual size an error may have: there are many of them, of which the largest counts. The
// usual one is half the largest that rounding has.
const sigmas = 8

// rounding is the square of the error of elements that are rounded to the type of a tensor, of 16 bits.
func rounding(t *expr.Tensor) float64 {
	if !t.DType.IsFloat() || t.DType.Bytes() != 2 {
		return 0
	}
	u := sigmas / 2 * Roundoff(t.DType)
	return u * u
}

// lost is the square of what the instructions of a schedule lose of factors that they round. It does not grow with the
// number of terms.
func lost(s *schedule.Schedule) float64 {
	if s.Numerics() < schedule.Fast {
		return 0
	}
	e := OfFactors * s.ErrorGrowth()
	return e * e
}

// kernelErrors are the squares of the errors of a kernel's tensors, as far as they are known.
type kernelErrors map[*expr.Tensor]float64

func (k kernelErrors) of(t *expr.Tensor) float64 {
	square, known := k[t]
	if known {
		return square
	}
	square = k.in(t.Body)
	if IsRounded(t) {
		square += rounding(t)
	}
	k[t] = square
	return square
}

// in is the square of the error of an expression.
func (k kernelErrors) in(e expr.Expr) float64 {
	switch n := e.(type) {
	case *expr.Load:
		return k.of(n.Tensor)
	case *expr.Select:
		return max(k.in(n.A), k.in(n.B))
	case *expr.Binary:
		if n.Op == expr.Mul || n.Op == expr.Div {
			return k.in(n.A) + k.in(n.B)
		}
	}
	worst := 0.0
	expr.Children(e, func(x expr.Expr) { worst = max(worst, k.in(x)) })
	return worst
}
