package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawIntegerProduct draws a product of small integers.
func DrawIntegerProduct(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	g.integerProduct()
	return workloadOf(t, g.tensors[len(g.tensors)-1:]...)
}

// DrawByteWindows draws a depthwise convolution of bytes with any kernel, strides, dilation, padding and channels.
func DrawByteWindows(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	channels, stride, dilation := g.int("channels", 1, 70), g.int("stride", 1, 2), g.int("dilation", 1, 2)
	rows, columns, down, across := g.int("rows", 1, 7), g.int("columns", 1, 7), g.int("down", 1, 6), g.int("across", 1, 9)
	pad := g.int("pad", 0, 2)
	high, wide := (down-1)*stride+(rows-1)*dilation+1, (across-1)*stride+(columns-1)*dilation+1
	x, w := g.source(array.Uint8, false, max(1, high-2*pad), max(1, wide-2*pad), channels), g.source(array.Int8, true, rows, columns, channels)
	padded := x
	if pad > 0 || high > x.Shape[0] || wide > x.Shape[1] {
		padded = g.add(padTo("pad", x, []int64{high, wide, channels}, []int64{pad, pad, 0}, expr.F(array.Uint8, 3)))
	}
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{down, across, channels}, []int64{rows, columns}, func(i, r []expr.Expr) expr.Expr {
		at := func(k int) expr.Expr {
			return expr.AddE(expr.MulE(i[k], expr.I(stride)), expr.MulE(r[k], expr.I(dilation)))
		}
		return expr.MulE(expr.To(array.Int32, padded.At(at(0), at(1), i[2])), expr.To(array.Int32, w.At(r[0], r[1], i[2])))
	}))
	scale := g.source(array.Float32, true, channels)
	g.add(expr.Compute("requantised", sum.Shape, func(i []expr.Expr) expr.Expr {
		return requantised(sum.At(i...), scale.At(i[2]), array.Uint8, true)
	}))
	return workloadOf(t, g.tensors[len(g.tensors)-1:]...)
}

// integerProduct adds a convolution or a matrix product of small integers, requantised as in quantised models.
func (g *dag) integerProduct() {
	small := []array.DType{array.Uint8, array.Int8, array.Int8, array.Int16}
	data, weights := rapid.SampledFrom(small).Draw(g.t, "data"), rapid.SampledFrom(small).Draw(g.t, "weights")
	size, kernel := g.int("size", 3, 7), g.int("kernel", 1, 3)
	in, out := g.int("in", 1, 3)*rapid.SampledFrom([]int64{1, 2, 4, 4, 8}).Draw(g.t, "channels"), g.int("out", 1, 40)
	depthwise := rapid.IntRange(0, 3).Draw(g.t, "depthwise") == 0
	if depthwise {
		in = out
	}
	pad, depth := kernel/2, in
	if depthwise {
		depth = 1
	}
	x, w := g.source(data, false, size, size, in), g.source(weights, rapid.IntRange(0, 5).Draw(g.t, "constant") > 0, kernel, kernel, depth, out)
	to := size + 2*pad - kernel + 1
	padded := x
	if pad > 0 || rapid.Bool().Draw(g.t, "copied") {
		padded = g.add(padTo("pad", x, []int64{size + 2*pad, size + 2*pad, in}, []int64{pad, pad, 0}, expr.F(data, 3)))
	}
	terms := []int64{kernel, kernel, in}
	if depthwise {
		terms = terms[:2]
	}
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{to, to, out}, terms, func(i, r []expr.Expr) expr.Expr {
		channel, weight := i[2], expr.I(0)
		if !depthwise {
			channel, weight = r[2], r[2]
		}
		a := padded.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), channel)
		return expr.MulE(expr.To(array.Int32, a), expr.To(array.Int32, w.At(r[0], r[1], weight, i[2])))
	}))
	scale := g.source(array.Float32, true, out)
	to8 := rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(g.t, "to")
	early := rapid.Bool().Draw(g.t, "bounds before rounding")
	q := g.add(expr.Compute("requantised", sum.Shape, func(i []expr.Expr) expr.Expr {
		return requantised(sum.At(i...), scale.At(i[2]), to8, early)
	}))
	if rapid.IntRange(0, 2).Draw(g.t, "activated") == 0 {
		g.add(expr.Compute("activated", q.Shape, func(i []expr.Expr) expr.Expr { return activated(q.At(i...), to8) }))
	}
}

// activated returns a quantised value times its sigmoid, which is quantised in between.
func activated(q expr.Expr, to array.DType) expr.Expr {
	const f = array.Float32
	one, real := expr.F(f, 1), expr.MulE(expr.To(f, q), expr.F(f, 0.03125))
	sigmoid := Quantised(expr.MulE(expr.DivE(one, expr.AddE(one, expr.Un(expr.Exp, expr.Un(expr.Neg, real)))), expr.F(f, 127)), to)
	return Quantised(expr.MulE(expr.MulE(real, expr.To(f, sigmoid)), expr.F(f, 0.25)), to)
}

// Quantised returns a float32 value rounded to an integer type within its bounds.
func Quantised(x expr.Expr, to array.DType) expr.Expr {
	low, high := expr.To(array.Float32, expr.Lowest(to)), expr.To(array.Float32, expr.Highest(to))
	return expr.To(to, expr.Un(expr.Round, expr.MinE(expr.MaxE(x, low), high)))
}

// requantised returns a sum times a scale as an 8-bit integer, with bounds applied after rounding or before.
func requantised(sum, scale expr.Expr, to array.DType, early bool) expr.Expr {
	const f = array.Float32
	low, high := expr.To(f, expr.Lowest(to)), expr.To(f, expr.Highest(to))
	scaled := expr.MulE(expr.To(f, sum), scale)
	if zero := expr.F(f, 5); !early {
		return expr.To(to, expr.MinE(expr.MaxE(expr.AddE(expr.Un(expr.Round, scaled), zero), low), high))
	}
	whole := expr.Un(expr.Round, expr.MinE(expr.MaxE(scaled, expr.F(f, low.(*expr.Float).Value-5)), expr.F(f, high.(*expr.Float).Value-5.25)))
	return expr.To(to, expr.AddE(expr.To(array.Int32, whole), expr.F(array.Int32, 5)))
}
