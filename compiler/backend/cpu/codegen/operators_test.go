package codegen

import (
	"fmt"
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestOperators compares every operator on every element type with the evaluator, in vectors and, in the last
// element, in scalars.
func TestOperators(t *testing.T) {
	var cases []kerneltest.Case
	for d := array.Float32; d <= array.Bool; d++ {
		for op := expr.Neg; op <= expr.IsInf; op++ {
			if unaryHasMeaning(op, d) {
				cases = append(cases, operatorCase(t, d, op.String(), func(a, _ expr.Expr) expr.Expr { return expr.Un(op, a) }))
			}
		}
		for op := expr.Add; op <= expr.Ne; op++ {
			if binaryHasMeaning(op, d) {
				cases = append(cases, operatorCase(t, d, op.String(), func(a, b expr.Expr) expr.Expr { return expr.Bin(op, a, b) }))
			}
		}
		for to := array.Float32; to <= array.Bool; to++ {
			cases = append(cases, operatorCase(t, d, "cast "+to.String(), func(a, _ expr.Expr) expr.Expr { return expr.To(to, a) }))
		}
		for _, c := range []expr.Combiner{expr.Sum, expr.Prod, expr.Maximum, expr.Minimum} {
			if d != array.Bool {
				cases = append(cases, reductionCase(t, d, c))
			}
		}
	}
	if testing.Short() {
		cases = every(cases, 5) // different operators of each type
	}
	for _, m := range quick(modes, "avx512") {
		t.Run(m.name, func(t *testing.T) { checkCases(t, t, m, cases) })
	}
}

// every returns each n-th element of a list.
func every[T any](list []T, n int) (some []T) {
	for k := 0; k < len(list); k += n {
		some = append(some, list[k])
	}
	return some
}

func unaryHasMeaning(op expr.UnaryOp, d array.DType) bool {
	switch {
	case op == expr.Not:
		return !d.IsFloat()
	case d.IsFloat():
		return true
	}
	return d.IsInt() && (op == expr.Neg || op == expr.Abs)
}

func binaryHasMeaning(op expr.BinaryOp, d array.DType) bool {
	switch op {
	case expr.And, expr.Or, expr.Xor:
		return !d.IsFloat()
	case expr.FloorDiv, expr.FloorMod, expr.ShiftLeft, expr.ShiftRight:
		return d.IsInt()
	case expr.Lt, expr.Le, expr.Eq, expr.Ne, expr.Min, expr.Max:
		return true
	}
	return d != array.Bool
}

// operatorArgs returns pairs of values of either sign, the limits of the type, zero and, if it has them, infinities
// and NaN.
func operatorArgs(d array.DType, n int64) []*array.Array {
	values := []float64{0, 1, -1, 2, 3, -3, 5, 7, 9, -8, 15, 31, 33, 64, 100, -100, 127, -128}
	if d.IsFloat() {
		values = []float64{0, 1, -1, 0.5, -0.25, 2, 3.5, -7.75, math.Inf(1), math.Inf(-1), math.NaN(), 200, -3e4, 6e4}
	}
	if d == array.Float32 || d == array.Float64 {
		values = append(values, 3e9, -3e9, 1e19, -1e19)
	}
	count := int64(len(values))
	a, b := array.New(d, n), array.New(d, n)
	for i := range n {
		a.SetFloat(i, values[i%count])
		b.SetFloat(i, values[(i/count+3*i)%count])
		if d.IsInt() && i%11 == 5 { // the type's limits
			a.SetInt(i, math.MinInt64>>(64-8*d.Bytes()))
			b.SetInt(i, -i%2)
		}
		if d.IsInt() && i%11 == 7 {
			a.SetInt(i, ^(math.MinInt64 >> (64 - 8*d.Bytes())))
		}
	}
	return []*array.Array{a, b}
}

func operatorCase(t *testing.T, d array.DType, name string, apply func(a, b expr.Expr) expr.Expr) kerneltest.Case {
	n := max(39, 96/d.Bytes()+1) // whole vectors, halves and a remainder of one
	x, y := expr.NewInput("x", d, n), expr.NewInput("y", d, n)
	z := expr.Compute(name, x.Shape, func(i []expr.Expr) expr.Expr { return apply(x.At(i...), y.At(i...)) })
	w, err := expr.NewWorkload([]*expr.Tensor{z}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if err := s.Vectorize(0, 0); err != nil {
		t.Fatal(err)
	}
	return kerneltest.Case{Workload: w, Schedule: s, Workers: 1, Args: operatorArgs(d, n)}
}

func reductionCase(t *testing.T, d array.DType, c expr.Combiner) kerneltest.Case {
	x := expr.NewInput("x", d, 3, 40)
	z := expr.ReduceOver(fmt.Sprint(c), c, []int64{40}, []int64{3}, func(i, r []expr.Expr) expr.Expr { return x.At(r[0], i[0]) })
	w, err := expr.NewWorkload([]*expr.Tensor{z})
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if err := s.Reorder(0, 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Vectorize(0, 0); err != nil {
		t.Fatal(err)
	}
	a := operatorArgs(d, 120)[0]
	a.Shape = []int64{3, 40}
	return kerneltest.Case{Workload: w, Schedule: s, Workers: 1, Args: []*array.Array{a}}
}
