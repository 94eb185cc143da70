package exprtest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Product is a matrix product with a constant, m x k x n.
func Product(t testing.TB, m, k, n int64) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", array.Float32, m, k), expr.NewConstant("b", array.Float32, k, n)
	c := expr.ReduceOver("c", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{c})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
