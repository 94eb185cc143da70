package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawBlockProduct draws a product of rows in float32, or narrower, with block-quantised weights: bytes or half
// bytes, zero points of every kind or none, any extents, with or without surrounding stages.
func DrawBlockProduct(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	sum := g.blockProduct()
	if !rapid.Bool().Draw(t, "epilogue") {
		return workloadOf(t, sum)
	}
	bias := g.source(array.Float32, true, sum.Shape[1])
	return workloadOf(t, expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(expr.AddE(sum.At(i...), bias.At(i[1])), expr.F(array.Float32, 0))
	}))
}

// blockProduct adds such a product.
func (g *dag) blockProduct() *expr.Tensor {
	const f = array.Float32
	nibbles := rapid.Bool().Draw(g.t, "nibbles")
	block := rapid.SampledFrom([]int64{2, 4, 8, 16, 24, 32, 64}).Draw(g.t, "block")
	blocks, rows, columns := g.int("blocks", 1, 4), g.int("rows", 1, 9), g.int("columns", 1, 150)
	depth := block * blocks
	x := g.source(rapid.SampledFrom([]array.DType{f, f, array.BFloat16}).Draw(g.t, "data"), false, rows, depth)
	if rapid.Bool().Draw(g.t, "prologue") {
		read := x
		x = g.add(expr.Compute("before", x.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(read.At(i...), expr.Zero(read.DType)) }))
	}
	of := blockWeights(g, nibbles, depth, columns)
	scale := g.source(rapid.SampledFrom([]array.DType{f, f, array.Float16}).Draw(g.t, "scale"), true, blocks, columns)
	zero := blockZeros(g, blocks, columns)
	return g.add(expr.ReduceOver("product", expr.Sum, []int64{rows, columns}, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		at := expr.Bin(expr.FloorDiv, r[0], expr.I(block))
		code := expr.To(f, of(r[0], i[1]))
		if zero != nil {
			code = expr.SubE(code, zero(at, i[1]))
		}
		return expr.MulE(expr.To(f, x.At(i[0], r[0])), expr.MulE(code, expr.To(f, scale.At(at, i[1]))))
	}))
}

// blockWeights returns codes by row and column.
func blockWeights(g *dag, nibbles bool, depth, columns int64) func(k, n expr.Expr) expr.Expr {
	if !nibbles {
		w := g.source(rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(g.t, "codes"), true, depth, columns)
		return func(k, n expr.Expr) expr.Expr { return w.At(k, n) }
	}
	w := g.source(array.Uint8, true, depth/2, columns)
	return func(k, n expr.Expr) expr.Expr {
		return expr.Nibble(w.At(expr.Bin(expr.FloorDiv, k, expr.I(2)), n), k)
	}
}

// blockZeros returns zero points by block and column, or nil for none.
func blockZeros(g *dag, blocks, columns int64) func(b, n expr.Expr) expr.Expr {
	const f = array.Float32
	switch d := rapid.SampledFrom([]array.DType{array.Invalid, array.Bool, array.Uint8, f}).Draw(g.t, "zero points"); d {
	case array.Invalid:
		return nil
	case array.Bool:
		return func(expr.Expr, expr.Expr) expr.Expr { return expr.F(f, 8) }
	default:
		z := g.source(d, true, blocks, columns)
		return func(b, n expr.Expr) expr.Expr { return expr.To(f, z.At(b, n)) }
	}
}
