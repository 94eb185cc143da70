package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawTotals draws a reduction of a whole tensor to one result without axes, with one or with two, or to one per row
// or column of a few: a sum or a maximum, with an epilogue or not, or the position of the maximum.
func DrawTotals(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64, array.Int32}).Draw(t, "dtype")
	terms := rapid.SampledFrom([]int64{31, 64, 257, 1024, 2049, 4099}).Draw(t, "terms")
	shape := rapid.SampledFrom([][]int64{{}, {}, {1}, {1, 1}, {2}, {3}}).Draw(t, "results")
	own := []int64{terms}
	if rapid.IntRange(0, 3).Draw(t, "pairs") == 0 {
		own = append(own, 2)
	}
	value := g.rowsOrColumns(d, array.Elements(shape), own)
	reduced := func(name string, c expr.Combiner, term func(i, r []expr.Expr) expr.Expr) *expr.Tensor {
		return g.add(expr.ReduceOver(name, c, shape, own, term))
	}
	out := reduced("total", g.combiner(d), value)
	switch rapid.SampledFrom([]string{"alone", "mapped", "place"}).Draw(t, "kind") {
	case "mapped":
		sum := out
		out = expr.Compute("out", shape, func(i []expr.Expr) expr.Expr { return expr.MulE(sum.At(i...), expr.F(d, 2)) })
	case "place":
		largest := reduced("largest", expr.Maximum, value)
		out = reduced("place", expr.Minimum, func(i, r []expr.Expr) expr.Expr {
			return expr.Sel(expr.Bin(expr.Eq, value(i, r), largest.At(i...)), expr.To(array.Int32, r[0]), expr.Highest(array.Int32))
		})
	}
	w := workloadOf(t, out)
	if rapid.IntRange(0, 2).Draw(t, "parts") == 0 {
		g.makeParts(w)
	}
	return w
}

// rowsOrColumns draws a matrix and returns a term of a result.
func (g *dag) rowsOrColumns(d array.DType, results int64, terms []int64) func(i, r []expr.Expr) expr.Expr {
	first := func(i []expr.Expr) expr.Expr {
		if results == 1 {
			return expr.I(0)
		}
		return i[0]
	}
	if rapid.IntRange(0, 3).Draw(g.t, "columns") == 0 {
		x := g.source(d, false, append(terms[:len(terms):len(terms)], results)...)
		return func(i, r []expr.Expr) expr.Expr { return x.At(append(r[:len(r):len(r)], first(i))...) }
	}
	x := g.source(d, false, append([]int64{results}, terms...)...)
	return func(i, r []expr.Expr) expr.Expr { return x.At(append([]expr.Expr{first(i)}, r...)...) }
}
