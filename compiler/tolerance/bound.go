package tolerance

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Largest is the largest bound: outputs with larger errors are wrong under any numerics.
const Largest = 0.1

// Bound returns the allowed error of a program's outputs against float32 with direct sums, relative to the largest
// element of each, for numerics that round factors of products; 0 if nothing is rounded. It propagates element
// errors through all kernels: storage in 16 bits adds one rounding, and a schedule's algorithm its own loss. Errors
// are assumed independent. A sum of n terms grows like the root of n, and so does its error, so its relative error
// is that of a term for any n; a product or quotient has the errors of both operands. It is not a proof: a kernel
// may subtract nearly equal values.
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
	call := func(n int) error {
		c := p.Calls[n]
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
		return nil
	}
	carry := func(to, from int) {
		squares[p.Root(to)] = max(squares[p.Root(to)], squares[p.Root(from)])
	}
	err := p.Execute(program.Execution{
		Call: call,
		Begin: func(l program.Loop) int64 {
			for _, s := range l.States {
				carry(s.Value, s.Init)
			}
			return min(l.Most, maxIterations)
		},
		Step: func(program.Loop, int64) bool { return true },
		Advance: func(l program.Loop) {
			for _, s := range l.States {
				carry(s.Value, s.Next)
			}
		},
	})
	if err != nil {
		return 0, err
	}
	worst := 0.0
	for _, v := range p.Outputs {
		worst = max(worst, squares[p.Root(v)])
	}
	return min(math.Sqrt(worst), Largest), nil
}

// maxIterations limits the iterations of a loop through which errors are propagated.
const maxIterations = 64

// sigmas is the allowed multiple of the standard error: there are many errors, of which the largest counts. The
// standard one is half the largest rounding error.
const sigmas = 8

// rounding returns the squared error of elements that are rounded to a tensor's 16-bit type.
func rounding(t *expr.Tensor) float64 {
	if !t.DType.IsFloat() || t.DType.Bytes() != 2 {
		return 0
	}
	u := sigmas / 2 * Roundoff(t.DType)
	return u * u
}

// lost returns the squared error of a schedule's instructions that round factors. It does not grow with the number
// of terms.
func lost(s *schedule.Schedule) float64 {
	if s.Numerics() < schedule.Fast {
		return 0
	}
	e := OfFactors * s.ErrorGrowth()
	return e * e
}

// kernelErrors maps a kernel's tensors to their squared errors, as far as known.
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

// in returns the squared error of an expression.
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
