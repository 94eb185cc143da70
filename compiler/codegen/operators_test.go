package codegen

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestOperators compares every operator on every element type with the evaluator, in vectors and, in the last
// element, in scalars.
func TestOperators(t *testing.T) {
	var cases []testCase
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
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { checkCases(t, t, m, cases) })
	}
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
	case expr.ShiftLeft, expr.ShiftRight:
		return d >= array.Uint8 && d <= array.Uint64
	case expr.FloorDiv, expr.FloorMod:
		return d.IsInt()
	case expr.Lt, expr.Le, expr.Eq, expr.Ne, expr.Min, expr.Max:
		return true
	}
	return d != array.Bool
}

// operatorArgs are values of either sign where the type has them, and small positive ones, with which every operator has
// an answer.
func operatorArgs(d array.DType, n int64) []*array.Array {
	a, b := array.New(d, n), array.New(d, n)
	for i := range n {
		switch {
		case d == array.Bool:
			a.SetInt(i, i%2)
			b.SetInt(i, i/2%2)
		case d.IsFloat():
			a.SetFloat(i, float64(i%17-8)/8)
			b.SetFloat(i, float64(i%5+1)/2)
		case d >= array.Uint8:
			a.SetInt(i, i%23)
			b.SetInt(i, i%3+1)
		default:
			a.SetInt(i, i%23-11)
			b.SetInt(i, i%3+1)
		}
	}
	return []*array.Array{a, b}
}

func operatorCase(t *testing.T, d array.DType, name string, apply func(a, b expr.Expr) expr.Expr) testCase {
	const n = 7
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
	return testCase{w, s, 1, operatorArgs(d, n)}
}

func reductionCase(t *testing.T, d array.DType, c expr.Combiner) testCase {
	x := expr.NewInput("x", d, 3, 20)
	z := expr.ReduceOver(fmt.Sprint(c), c, []int64{20}, []int64{3}, func(i, r []expr.Expr) expr.Expr { return x.At(r[0], i[0]) })
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
	a := operatorArgs(d, 60)[0]
	a.Shape = []int64{3, 20}
	return testCase{w, s, 1, []*array.Array{a}}
}
