package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawNarrowProduct draws a convolution or a matrix product in float32 with at least one operand stored in 16 bits,
// as in programs for fast numerics, or with integer weights: padded or not, with an epilogue, and stored as any type.
func DrawNarrowProduct(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	const f = array.Float32
	types := rapid.SampledFrom([][2]array.DType{
		{array.BFloat16, array.BFloat16}, {array.BFloat16, array.BFloat16}, {array.Float16, array.Float16}, {f, array.BFloat16},
		{f, array.Float16}, {array.BFloat16, f}, {array.Float16, array.BFloat16}, {f, array.Int8}, {array.Float16, array.Int8},
	}).Draw(t, "types")
	size, kernel, stride := g.int("size", 3, 9), g.int("kernel", 1, 3), g.int("stride", 1, 2)
	in, out := g.int("in", 1, 3)*rapid.SampledFrom([]int64{1, 2, 4, 8}).Draw(t, "channels"), g.int("out", 1, 70)
	pad := kernel / 2
	x, w := g.source(types[0], false, size, size, in), g.source(types[1], rapid.IntRange(0, 5).Draw(t, "constant") > 0, kernel, kernel, in, out)
	padded := x
	if pad > 0 {
		padded = g.add(padTo("pad", x, []int64{size + 2*pad, size + 2*pad, in}, []int64{pad, pad, 0}, expr.Zero(types[0])))
	}
	to := (size+2*pad-kernel)/stride + 1
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{to, to, out}, []int64{kernel, kernel, in}, func(i, r []expr.Expr) expr.Expr {
		a := padded.At(expr.AddE(expr.MulE(i[0], expr.I(stride)), r[0]), expr.AddE(expr.MulE(i[1], expr.I(stride)), r[1]), r[2])
		return expr.MulE(expr.To(f, a), expr.To(f, w.At(r[0], r[1], r[2], i[2])))
	}))
	bias, stored := g.source(f, true, out), rapid.SampledFrom([]array.DType{array.BFloat16, array.Float16, f}).Draw(t, "stored")
	return workloadOf(t, expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr {
		return expr.To(stored, expr.MaxE(expr.AddE(sum.At(i...), bias.At(i[2])), expr.F(f, 0)))
	}))
}
