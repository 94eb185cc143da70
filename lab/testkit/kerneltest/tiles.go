package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// tileTypes lists the operand types that processors multiply in tiles.
var tileTypes = [][2]array.DType{
	{array.BFloat16, array.BFloat16}, {array.BFloat16, array.BFloat16}, {array.Float16, array.Float16},
	{array.Int8, array.Int8}, {array.Int8, array.Uint8}, {array.Uint8, array.Int8}, {array.Uint8, array.Uint8},
}

// DrawTiles draws a product or a convolution for tile instructions, in batches or not, with any number of positions
// and results, and usually with the terms of one or two tiles.
func DrawTiles(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	types := rapid.SampledFrom(tileTypes).Draw(t, "types")
	a, b, sum := types[0], types[1], array.Int32
	if a.IsFloat() {
		sum = array.Float32
	}
	terms := 64 / a.Bytes() * g.int("tiles", 1, 3)
	if rapid.IntRange(0, 4).Draw(t, "any terms") == 0 {
		terms = g.int("terms", 1, 90)
	}
	out := g.int("out", 1, 70)
	if rapid.Bool().Draw(t, "convolution") {
		g.tiledConv(a, b, sum, terms, out)
	} else {
		g.tiledProduct(a, b, sum, terms, out)
	}
	return g.drawEpilogue()
}

// tiledProduct adds a product of any rows, in a batch or not.
func (g *dag) tiledProduct(a, b, sum array.DType, terms, out int64) {
	shape := []int64{g.int("rows", 1, 70), out}
	if rapid.IntRange(0, 2).Draw(g.t, "batch") == 0 {
		shape = append([]int64{g.int("batches", 1, 3)}, shape...)
	}
	last := len(shape) - 1
	x, w := g.source(a, false, append(append([]int64{}, shape[:last]...), terms)...), g.columns(b, shape, terms)
	g.add(expr.ReduceOver("product", expr.Sum, shape, []int64{terms}, func(i, r []expr.Expr) expr.Expr {
		read := append(append([]expr.Expr{}, i[:last]...), r[0])
		return expr.MulE(expr.To(sum, x.At(read...)), expr.To(sum, w(i, r[0])))
	}))
}

// columns returns the right operand of a product: a constant or a tensor, which may be transposed or differ for each
// product of a batch.
func (g *dag) columns(b array.DType, shape []int64, terms int64) func(i []expr.Expr, r expr.Expr) expr.Expr {
	last := len(shape) - 1
	constant := rapid.Bool().Draw(g.t, "constant")
	batch, turned := !constant && rapid.Bool().Draw(g.t, "own columns"), rapid.Bool().Draw(g.t, "transposed")
	extents := []int64{terms, shape[last]}
	if turned {
		extents[0], extents[1] = extents[1], extents[0]
	}
	if batch {
		extents = append(append([]int64{}, shape[:last-1]...), extents...)
	}
	w := g.source(b, constant, extents...)
	return func(i []expr.Expr, r expr.Expr) expr.Expr {
		at := []expr.Expr{r, i[last]}
		if turned {
			at[0], at[1] = at[1], at[0]
		}
		if batch {
			at = append(append([]expr.Expr{}, i[:last-1]...), at...)
		}
		return w.At(at...)
	}
}

// tiledConv adds a convolution of contiguous channels, padded or not.
func (g *dag) tiledConv(a, b, sum array.DType, in, out int64) {
	n, h, w := g.int("batch", 1, 2), g.int("height", 1, 5), g.int("width", 1, 40)
	kernel, stride := g.int("kernel", 1, 3), g.int("stride", 1, 2)
	pad := rapid.SampledFrom([]int64{0, kernel / 2}).Draw(g.t, "pad")
	h, w = max(h, kernel-2*pad), max(w, kernel-2*pad)
	x, weights := g.source(a, false, n, h, w, in), g.source(b, true, kernel, kernel, in, out)
	padded := x
	if pad > 0 || rapid.IntRange(0, 3).Draw(g.t, "copied") == 0 {
		padded = expr.Compute("pad", []int64{n, h + 2*pad, w + 2*pad, in}, func(i []expr.Expr) expr.Expr {
			y, z := expr.SubE(i[1], expr.I(pad)), expr.SubE(i[2], expr.I(pad))
			return expr.Sel(expr.Bin(expr.And, expr.InRange(y, 0, h), expr.InRange(z, 0, w)), x.At(i[0], y, z, i[3]), expr.F(a, 2))
		})
	}
	at := func(i, r expr.Expr) expr.Expr { return expr.AddE(expr.MulE(i, expr.I(stride)), r) }
	shape := []int64{n, (h+2*pad-kernel)/stride + 1, (w+2*pad-kernel)/stride + 1, out}
	g.add(expr.ReduceOver("conv", expr.Sum, shape, []int64{kernel, kernel, in}, func(i, r []expr.Expr) expr.Expr {
		read := padded.At(i[0], at(i[1], r[0]), at(i[2], r[1]), r[2])
		return expr.MulE(expr.To(sum, read), expr.To(sum, weights.At(r[0], r[1], r[2], i[3])))
	}))
}
