package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawConv draws a convolution that Winograd's algorithm supports: any size, kernel, strides, batch, padding and
// channels, weights of the data's type or in integers, with or without an epilogue.
func DrawConv(t *rapid.T) *expr.Workload { return drawConv(t, false) }

// DrawOpenConv is like DrawConv, but an execution chooses the height of the images, their width, or both. Some images
// have no padding.
func DrawOpenConv(t *rapid.T) *expr.Workload { return drawConv(t, true) }

func drawConv(t *rapid.T, open bool) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64, array.Uint8, array.Int8}).Draw(t, "dtype")
	kernel := d
	if d.IsInt() || rapid.IntRange(0, 3).Draw(t, "integers") == 0 {
		kernel = array.Int8
	}
	n, ic, oc := g.int("batch", 1, 3), g.int("in", 1, 20), g.int("out", 1, 37)
	h, w := g.int("height", 1, 15), g.int("width", 1, 15)
	kernels := []int64{2, 3, 3, 3, 4, 5}
	ky, kx := rapid.SampledFrom(kernels).Draw(t, "ky"), rapid.SampledFrom(kernels).Draw(t, "kx")
	sy, sx := g.int("sy", 1, 2), g.int("sx", 1, 2)
	top, left := g.int("top", 0, 2), g.int("left", 0, 2)
	outputs := func(extent, padding, kernel, stride int64) int64 { return max(0, extent+padding-kernel)/stride + 1 }
	oh, ow := outputs(h, top+g.int("bottom", 0, 2), ky, sy), outputs(w, left+g.int("right", 0, 2), kx, sx)
	rows, columns := &expr.Var{Extent: oh}, &expr.Var{Extent: ow}
	if open {
		sides := g.int("open sides", 1, 3)
		if sides != 1 {
			columns.Limit = expr.NewCount("columns", ow).At()
		}
		if sides != 2 {
			rows.Limit = expr.NewCount("rows", oh).At()
		}
	}
	// height and width are those of an image in an execution: each output less is a stride less.
	height := expr.AddE(expr.MulE(rows.Held(), expr.I(sy)), expr.I(h-sy*oh))
	width := expr.AddE(expr.MulE(columns.Held(), expr.I(sx)), expr.I(w-sx*ow))
	ph, pw := sy*(oh-1)+ky, sx*(ow-1)+kx
	bare := open && rapid.Bool().Draw(t, "bare")
	if bare {
		h, w = ph, pw
	}
	x, weights := g.source(d, false, n, h, w, ic), g.source(kernel, true, ky, kx, ic, oc)
	pad := x
	if !bare {
		pad = expr.Compute("pad", []int64{n, ph, pw, ic}, func(i []expr.Expr) expr.Expr {
			y, z := expr.SubE(i[1], expr.I(top)), expr.SubE(i[2], expr.I(left))
			inside := expr.Bin(expr.And, inRange(y, height), inRange(z, width))
			return expr.Sel(inside, x.At(i[0], y, z, i[3]), expr.Zero(d))
		})
		pad.Axes[1].Limit, pad.Axes[2].Limit = windowed(rows.Limit, sy, ky), windowed(columns.Limit, sx, kx)
	}
	at := func(i expr.Expr, stride int64, r expr.Expr) expr.Expr {
		return expr.AddE(expr.MulE(i, expr.I(stride)), r)
	}
	conv := expr.ReduceOver("conv", expr.Sum, []int64{n, oh, ow, oc}, []int64{ky, kx, ic}, func(i, r []expr.Expr) expr.Expr {
		a, b := pad.At(i[0], at(i[1], sy, r[0]), at(i[2], sx, r[1]), r[2]), weights.At(r[0], r[1], r[2], i[3])
		if d.IsInt() {
			return expr.MulE(expr.To(array.Int32, a), expr.To(array.Int32, b))
		}
		return expr.MulE(a, expr.To(d, b))
	})
	conv.Axes[1].Limit, conv.Axes[2].Limit = rows.Limit, columns.Limit
	out := conv
	if epilogue := rapid.Bool().Draw(t, "epilogue"); epilogue && d.IsInt() {
		scale := g.source(array.Float32, true, oc)
		out = expr.Compute("requantised", conv.Shape, func(i []expr.Expr) expr.Expr {
			return requantised(conv.At(i...), scale.At(i[3]), d, true)
		})
	} else if epilogue {
		bias, residual := g.source(d, true, oc), g.source(d, false, n, oh, ow, oc)
		out = expr.Compute("out", conv.Shape, func(i []expr.Expr) expr.Expr {
			sum := expr.AddE(conv.At(i...), bias.At(i[3]))
			return expr.MaxE(expr.AddE(sum, residual.At(i...)), expr.Zero(d))
		})
	}
	if out != conv {
		out.Axes[1].Limit, out.Axes[2].Limit = rows.Limit, columns.Limit
	}
	return workloadOf(t, out)
}

// inRange returns 0 <= at < size.
func inRange(at, size expr.Expr) expr.Expr {
	return expr.Bin(expr.And, expr.Bin(expr.Le, expr.I(0), at), expr.Bin(expr.Lt, at, size))
}

// windowed returns the limit of the inputs of a window that steps over outputs with the given limit; nil for none.
func windowed(limit expr.Expr, stride, window int64) expr.Expr {
	if limit == nil {
		return nil
	}
	return expr.Simplify(expr.AddE(expr.MulE(limit, expr.I(stride)), expr.I(window-stride)))
}
