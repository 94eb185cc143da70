package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Target returns a target with two threads by name.
func Target(t testing.TB, name string) *target.Target {
	t.Helper()
	m, err := target.Parse(name, 2)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Padded returns an image of rows x columns x channels with a border of zeros.
func Padded(x *expr.Tensor) *expr.Tensor {
	rows, columns, channels := x.Shape[0], x.Shape[1], x.Shape[2]
	return expr.Compute("pad", []int64{rows + 2, columns + 2, channels}, func(i []expr.Expr) expr.Expr {
		r, c := expr.SubE(i[0], expr.I(1)), expr.SubE(i[1], expr.I(1))
		inside := expr.Bin(expr.And, expr.InRange(r, 0, rows), expr.InRange(c, 0, columns))
		return expr.Sel(inside, x.At(r, c, i[2]), expr.F(array.Float32, 0))
	})
}

// Conv returns a 3x3 convolution of a padded image with a bias and an activation.
func Conv(t testing.TB, size, channels int64) *expr.Workload {
	t.Helper()
	x := expr.NewInput("x", array.Float32, size, size, channels)
	w := expr.NewConstant("w", array.Float32, 3, 3, channels, channels)
	pad := Padded(x)
	sum := expr.ReduceOver("conv", expr.Sum, []int64{size, size, channels}, []int64{3, 3, channels}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(pad.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), r[2]), w.At(r[0], r[1], r[2], i[2]))
	})
	relu := expr.Compute("relu", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(sum.At(i...), expr.F(array.Float32, 0)) })
	out, err := expr.NewWorkload([]*expr.Tensor{relu})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// WorkloadOf returns the workload that computes a tensor.
func WorkloadOf(t testing.TB, out *expr.Tensor) *expr.Workload {
	t.Helper()
	w, err := expr.NewWorkload([]*expr.Tensor{out})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Keys returns the product of an attention's queries and keys, both of heads, length and depth. Neighbouring columns
// of the result read rows of the keys that are depth elements apart.
func Keys(t testing.TB) *expr.Workload {
	const heads, length, depth = 8, 128, 64
	q, k := expr.NewInput("q", array.Float32, heads, length, depth), expr.NewInput("k", array.Float32, heads, length, depth)
	return WorkloadOf(t, expr.ReduceOver("scores", expr.Sum, []int64{heads, length, length}, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(q.At(i[0], i[1], r[0]), k.At(i[0], i[2], r[0]))
	}))
}
