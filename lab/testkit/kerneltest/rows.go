package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawRows draws one or two reductions of rows of some length, or of a single one: a softmax without its exponential,
// whose values would be too small to compare, or the deviation from the mean.
func DrawRows(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64}).Draw(t, "dtype")
	shape := []int64{g.int("outer", 1, 3), g.int("rows", 1, 4), g.int("length", 30, 300)}
	if rapid.IntRange(0, 3).Draw(t, "single") == 0 {
		shape = shape[2:]
	}
	x, last := g.source(d, false, shape...), len(shape)-1
	row := shape[:last]
	combiner := rapid.SampledFrom([]expr.Combiner{expr.Maximum, expr.Sum}).Draw(t, "combiner")
	first := g.add(expr.ReduceOver("first", combiner, row, shape[last:], func(i, r []expr.Expr) expr.Expr { return x.At(append(i, r...)...) }))
	if rapid.Bool().Draw(t, "alone") {
		return workloadOf(t, first)
	}
	rest := g.add(expr.Compute("rest", shape, func(i []expr.Expr) expr.Expr { return expr.SubE(x.At(i...), first.At(i[:last]...)) }))
	second := g.add(expr.ReduceOver("second", expr.Sum, row, shape[last:], func(i, r []expr.Expr) expr.Expr {
		v := rest.At(append(i, r...)...)
		return expr.MulE(v, v)
	}))
	scale := g.source(d, true, shape[last])
	return workloadOf(t, expr.Compute("out", shape, func(i []expr.Expr) expr.Expr {
		return expr.AddE(expr.MulE(rest.At(i...), scale.At(i[last])), second.At(i[:last]...))
	}))
}

func workloadOf(t *rapid.T, outs ...*expr.Tensor) *expr.Workload {
	w, err := expr.NewWorkload(outs)
	if err != nil {
		t.Fatalf("the drawn workload is none: %v", err)
	}
	return w
}
