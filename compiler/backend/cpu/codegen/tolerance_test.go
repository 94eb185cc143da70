package codegen

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// product is one of 64 terms whose results are stored as a type, and then read again or not.
func product(t *testing.T, d array.DType, again bool) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", array.BFloat16, 4, 64), expr.NewConstant("b", array.BFloat16, 64, 8)
	wide := func(e expr.Expr) expr.Expr { return expr.To(array.Float32, e) }
	sum := expr.ReduceOver("sum", expr.Sum, []int64{4, 8}, []int64{64}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(wide(a.At(i[0], r[0])), wide(b.At(r[0], i[1])))
	})
	out := sum
	if d != array.Float32 {
		out = expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.To(d, sum.At(i...)) })
	}
	outs := []*expr.Tensor{out}
	if again {
		outs = append(outs, expr.Compute("twice", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(wide(out.At(i...)), wide(out.At(i...))) }))
	}
	w, err := expr.NewWorkload(outs)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestToleranceOfNarrowResults: sums are in float32 whatever their factors and results are, so a kernel whose results
// are several units in the last place apart is wrong.
func TestToleranceOfNarrowResults(t *testing.T) {
	sums := 0x1p-24 * (64 + 4*8)
	for _, c := range []struct {
		name  string
		d     array.DType
		again bool
		want  float64
	}{
		{"float32", array.Float32, false, sums},
		{"bfloat16", array.BFloat16, false, sums + 4*0x1p-8},
		{"float16", array.Float16, false, sums + 4*0x1p-11},
		{"bfloat16 that is read again", array.BFloat16, true, 0x1p-8 * (64 + 4*8)},
	} {
		if got := Tolerance(product(t, c.d, c.again)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
