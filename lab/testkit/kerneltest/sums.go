package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawSums draws long sums of few results: products of a few rows with a matrix, whose terms are contiguous or far
// apart, or sums of all but the channels.
func DrawSums(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64, array.Int32}).Draw(t, "dtype")
	n, terms := g.int("results", 1, 70), 16*g.int("terms", 2, 20)+g.int("more", 0, 1)
	if rapid.IntRange(0, 3).Draw(t, "channels") == 0 {
		x := g.source(d, false, g.int("height", 4, 12), g.int("width", 4, 12), n)
		sum := expr.ReduceOver("sum", g.combiner(d), []int64{n}, x.Shape[:2], func(i, r []expr.Expr) expr.Expr { return x.At(r[0], r[1], i[0]) })
		return workloadOf(t, sum)
	}
	m, transposed := g.int("rows", 1, 3), rapid.Bool().Draw(t, "transposed")
	shape := []int64{terms, n}
	if transposed {
		shape = []int64{n, terms}
	}
	x, w := g.source(d, false, m, terms), g.source(d, rapid.Bool().Draw(t, "constant"), shape...)
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{m, n}, []int64{terms}, func(i, r []expr.Expr) expr.Expr {
		if transposed {
			return expr.MulE(x.At(i[0], r[0]), w.At(i[1], r[0]))
		}
		return expr.MulE(x.At(i[0], r[0]), w.At(r[0], i[1]))
	}))
	bias := g.source(d, true, n)
	return workloadOf(t, expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(sum.At(i...), bias.At(i[1])) }))
}
