package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawRows draws what reduces rows of some length, once or twice: a softmax without its exponential, whose values
// would be nothing to compare, or what is left of the mean, over one axis or two.
func DrawRows(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64}).Draw(t, "dtype")
	shape := []int64{g.int("outer", 1, 3), g.int("rows", 1, 4), g.int("length", 30, 300)}
	x := g.source(d, false, shape...)
	row := shape[:2]
	combiner := rapid.SampledFrom([]expr.Combiner{expr.Maximum, expr.Sum}).Draw(t, "combiner")
	first := g.add(expr.ReduceOver("first", combiner, row, shape[2:], func(i, r []expr.Expr) expr.Expr { return x.At(i[0], i[1], r[0]) }))
	if rapid.Bool().Draw(t, "alone") {
		return workloadOf(t, first)
	}
	rest := g.add(expr.Compute("rest", shape, func(i []expr.Expr) expr.Expr { return expr.SubE(x.At(i...), first.At(i[0], i[1])) }))
	second := g.add(expr.ReduceOver("second", expr.Sum, row, shape[2:], func(i, r []expr.Expr) expr.Expr {
		v := rest.At(i[0], i[1], r[0])
		return expr.MulE(v, v)
	}))
	scale := g.source(d, true, shape[2])
	return workloadOf(t, expr.Compute("out", shape, func(i []expr.Expr) expr.Expr {
		return expr.AddE(expr.MulE(rest.At(i...), scale.At(i[2])), second.At(i[0], i[1]))
	}))
}

func workloadOf(t *rapid.T, out *expr.Tensor) *expr.Workload {
	w, err := expr.NewWorkload([]*expr.Tensor{out})
	if err != nil {
		t.Fatalf("the drawn workload is none: %v", err)
	}
	return w
}
