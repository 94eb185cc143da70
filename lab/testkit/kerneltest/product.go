package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawProduct draws a matrix product that Strassen's algorithm supports: any extents, either operand transposed,
// weights of the data's type or in integers, with or without surrounding stages, with intermediate results stored or
// not.
func DrawProduct(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64}).Draw(t, "dtype")
	m, k, n := g.int("rows", 2, 40), g.int("inner", 2, 40), g.int("columns", 2, 140)
	transposed := rapid.Bool().Draw(t, "transposed")
	shape := []int64{k, n}
	if transposed {
		shape = []int64{n, k}
	}
	constant := d
	if rapid.IntRange(0, 3).Draw(t, "integers") == 0 {
		constant = array.Int8
	}
	x, weights := g.source(d, false, m, k), g.source(constant, true, shape...)
	if rapid.Bool().Draw(t, "prologue") {
		read := x
		x = expr.Compute("before", x.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(read.At(i...), expr.Zero(d)) })
	}
	product := expr.ReduceOver("product", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		if transposed {
			return expr.MulE(x.At(i[0], r[0]), expr.To(d, weights.At(i[1], r[0])))
		}
		return expr.MulE(x.At(i[0], r[0]), expr.To(d, weights.At(r[0], i[1])))
	})
	outs := []*expr.Tensor{product}
	if rapid.Bool().Draw(t, "epilogue") {
		bias, residual := g.source(d, true, n), g.source(d, false, m, n)
		sum := expr.Compute("sum", product.Shape, func(i []expr.Expr) expr.Expr {
			return expr.AddE(expr.AddE(product.At(i...), bias.At(i[1])), residual.At(i...))
		})
		outs = []*expr.Tensor{expr.Compute("out", product.Shape, func(i []expr.Expr) expr.Expr {
			return expr.MaxE(expr.MulE(sum.At(i...), bias.At(i[1])), expr.Zero(d))
		})}
		if rapid.Bool().Draw(t, "stored") {
			outs = append([]*expr.Tensor{sum}, outs...)
		}
	}
	return workloadOf(t, outs...)
}
