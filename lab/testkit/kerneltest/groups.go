package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawGroups draws a grouped convolution: usually 2 to 9 or 16 channels on either side of a group, or any number up
// to 64, with any number of groups, and any kernel, strides, dilation and padding, with or without an epilogue.
func DrawGroups(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	a, b, sum := g.factors()
	channels := []int64{2, 3, 4, 5, 8, 8, 9, 16, 16}
	in := rapid.SampledFrom(channels).Draw(t, "in")
	out := rapid.SampledFrom(append(channels, 1, 1, 12, 17, 20, 25, 40)).Draw(t, "out")
	groups, n := g.int("groups", 2, 7), g.int("batch", 1, 2)
	h, w := g.int("height", 1, 9), g.int("width", 1, 20)
	ky, kx := g.int("ky", 1, 3), g.int("kx", 1, 3)
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0: // any width; with fewer results, since the evaluator computes each term
		in, out = g.int("any in", 1, 64), g.int("any out", 1, 64)
		groups, n, h, w = min(groups, 3), 1, min(h, 4), min(w, 7)
	case 1: // large windows
		ky, kx = g.int("large ky", 1, 7), g.int("large kx", 1, 7)
		in, out, n = min(in, 5), min(out, 9), 1
	}
	sy, sx, dy, dx := g.int("sy", 1, 3), g.int("sx", 1, 3), g.int("dy", 1, 3), g.int("dx", 1, 3)
	top, left := g.int("top", 0, 2), g.int("left", 0, 2)
	outputs := func(extent, kernel, dilation, stride int64) int64 {
		return max(0, extent-(kernel-1)*dilation-1)/stride + 1
	}
	oh := outputs(h+top+g.int("bottom", 0, 2), ky, dy, sy)
	ow := outputs(w+left+g.int("right", 0, 2), kx, dx, sx)
	x, weights := g.source(a, false, n, h, w, groups*in), g.source(b, true, ky, kx, in, groups*out)
	padded := []int64{n, sy*(oh-1) + dy*(ky-1) + 1, sx*(ow-1) + dx*(kx-1) + 1, groups * in}
	pad := expr.Compute("pad", padded, func(i []expr.Expr) expr.Expr {
		y, z := expr.SubE(i[1], expr.I(top)), expr.SubE(i[2], expr.I(left))
		return expr.Sel(expr.Bin(expr.And, expr.InRange(y, 0, h), expr.InRange(z, 0, w)), x.At(i[0], y, z, i[3]), expr.Zero(a))
	})
	at := func(i expr.Expr, stride int64, r expr.Expr, dilation int64) expr.Expr {
		return expr.AddE(expr.MulE(i, expr.I(stride)), expr.MulE(r, expr.I(dilation)))
	}
	g.add(expr.ReduceOver("conv", expr.Sum, []int64{n, oh, ow, groups * out}, []int64{ky, kx, in}, func(i, r []expr.Expr) expr.Expr {
		channel := expr.AddE(expr.MulE(expr.Bin(expr.FloorDiv, i[3], expr.I(out)), expr.I(in)), r[2])
		read := pad.At(i[0], at(i[1], sy, r[0], dy), at(i[2], sx, r[1], dx), channel)
		return expr.MulE(expr.To(sum, read), expr.To(sum, weights.At(r[0], r[1], r[2], i[3])))
	}))
	return g.drawEpilogue()
}
