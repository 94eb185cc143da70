package kerneltest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Product returns a matrix product with a constant, m x k x n.
func Product(t testing.TB, m, k, n int64) *expr.Workload {
	t.Helper()
	return ProductOf(t, array.Float32, m, k, n)
}

// ProductOf returns one with operands of type d, accumulated in float32, or in int32 for integers.
func ProductOf(t testing.TB, d array.DType, m, k, n int64) *expr.Workload {
	t.Helper()
	sum := array.Float32
	if d.IsInt() {
		sum = array.Int32
	}
	a, b := expr.NewInput("a", d, m, k), expr.NewConstant("b", d, k, n)
	c := expr.ReduceOver("c", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(sum, a.At(i[0], r[0])), expr.To(sum, b.At(r[0], i[1])))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{c})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
