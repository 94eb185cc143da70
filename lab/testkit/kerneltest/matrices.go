package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawMatrices draws a product or a convolution of whole matrices for a GPU's instructions: of any supported types,
// in batches or not, either operand transposed, with or without an epilogue, or parts of larger tensors.
func DrawMatrices(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	if rapid.IntRange(0, 3).Draw(t, "convolution") == 0 {
		g.wholeConv()
	} else {
		g.matrices(16*g.int("rows", 1, 5), 8*g.int("columns", 1, 10), 8*g.int("terms", 1, 12))
	}
	return g.drawEpilogue()
}

// DrawWarpgroups draws a product like those of DrawMatrices whose matrices have the size of warpgroup instructions,
// or are slightly smaller.
func DrawWarpgroups(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	beyond := func(name string) int64 { return rapid.SampledFrom([]int64{0, 0, 8, 13}).Draw(t, name) }
	m, n := 64*g.int("rows", 1, 2)-beyond("rows beyond"), 16*g.int("columns", 1, 8)-beyond("columns beyond")
	g.matrices(m, n, 32*g.int("terms", 1, 4))
	return g.drawEpilogue()
}

// drawEpilogue returns a workload of the product and its epilogue.
func (g *dag) drawEpilogue() *expr.Workload {
	t, product := g.t, g.tensors[0]
	outs := []*expr.Tensor{product}
	if rapid.Bool().Draw(t, "epilogue") {
		bias, last := g.source(product.DType, true, product.Shape[len(product.Shape)-1]), len(product.Shape)-1
		sum := expr.Compute("sum", product.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(product.At(i...), bias.At(i[last])) })
		outs = []*expr.Tensor{expr.Compute("out", product.Shape, func(i []expr.Expr) expr.Expr {
			return expr.MaxE(sum.At(i...), expr.Zero(product.DType))
		})}
		if rapid.Bool().Draw(t, "stored") {
			outs = append([]*expr.Tensor{sum}, outs...)
		}
	}
	w := workloadOf(t, outs...)
	if rapid.IntRange(0, 3).Draw(t, "parts") == 0 {
		g.makeParts(w)
	}
	return w
}

// factors returns the types of two operands and of the sum of their products.
func (g *dag) factors() (a, b, sum array.DType) {
	types := [][3]array.DType{
		{array.Float32, array.Float32, array.Float32}, {array.Float32, array.Float32, array.Float32},
		{array.Float16, array.Float16, array.Float32}, {array.BFloat16, array.BFloat16, array.Float32},
		{array.Int8, array.Int8, array.Int32}, {array.Uint8, array.Uint8, array.Int32}, {array.Uint8, array.Int8, array.Int32},
		{array.Int8, array.Uint8, array.Int32}, {array.Float32, array.BFloat16, array.Float32}, {array.BFloat16, array.Float32, array.Float32},
	}
	x := rapid.SampledFrom(types).Draw(g.t, "types")
	return x[0], x[1], x[2]
}

// matrices adds a product of m by k and k by n elements.
func (g *dag) matrices(m, n, k int64) {
	a, b, sum := g.factors()
	shape, batch := []int64{m, n}, rapid.IntRange(0, 3).Draw(g.t, "batch") == 0
	if batch {
		shape = []int64{g.int("batches", 2, 3), m, n}
	}
	source := func(d array.DType, constant bool, extents ...int64) func(i []expr.Expr, at ...expr.Expr) expr.Expr {
		turned := rapid.Bool().Draw(g.t, "transposed")
		if turned {
			extents[0], extents[1] = extents[1], extents[0]
		}
		if batch {
			extents = append([]int64{shape[0]}, extents...)
		}
		t := g.source(d, constant && !batch, extents...)
		return func(i []expr.Expr, at ...expr.Expr) expr.Expr {
			if turned {
				at[0], at[1] = at[1], at[0]
			}
			if batch {
				at = append([]expr.Expr{i[0]}, at...)
			}
			return expr.To(sum, t.At(at...))
		}
	}
	x, y := source(a, false, m, k), source(b, true, k, n)
	g.add(expr.ReduceOver("product", expr.Sum, shape, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		row, column := i[len(i)-2], i[len(i)-1]
		return expr.MulE(x(i, row, r[0]), y(i, r[0], column))
	}))
}

// wholeConv adds a convolution whose channels and rows of positions are whole matrices.
func (g *dag) wholeConv() {
	a, b, sum := g.factors()
	in, out := 8*g.int("in", 1, 4), 16*g.int("out", 1, 3)
	height, width, kernel := g.int("height", 1, 4), 8*g.int("width", 1, 3), g.int("kernel", 1, 3)
	pad := kernel / 2
	x, w := g.source(a, false, in, height, width), g.source(b, true, out, in, kernel, kernel)
	padded := padTo("pad", x, []int64{in, height + 2*pad, width + 2*pad}, []int64{0, pad, pad}, expr.Zero(a))
	rows, columns := height+2*pad-kernel+1, width+2*pad-kernel+1
	g.add(expr.ReduceOver("sum", expr.Sum, []int64{out, rows, columns}, []int64{in, kernel, kernel}, func(i, r []expr.Expr) expr.Expr {
		at := padded.At(r[0], expr.AddE(i[1], r[1]), expr.AddE(i[2], r[2]))
		return expr.MulE(expr.To(sum, at), expr.To(sum, w.At(i[0], r[0], r[1], r[2])))
	}))
}
