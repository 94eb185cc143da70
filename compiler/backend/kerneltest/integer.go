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
	w, err := expr.NewWorkload(g.tensors[len(g.tensors)-1:])
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// integerProduct is a convolution or a matrix product of small integers, requantised as quantised models do.
func (g *dag) integerProduct() {
	small := []array.DType{array.Uint8, array.Int8, array.Int8, array.Int16}
	data, weights := rapid.SampledFrom(small).Draw(g.t, "data"), rapid.SampledFrom(small).Draw(g.t, "weights")
	size, kernel := g.int("size", 3, 7), g.int("kernel", 1, 3)
	in, out := g.int("in", 1, 3)*rapid.SampledFrom([]int64{1, 2, 4, 4, 8}).Draw(g.t, "channels"), g.int("out", 1, 40)
	pad := kernel / 2
	x, w := g.source(data, false, size, size, in), g.source(weights, rapid.IntRange(0, 5).Draw(g.t, "constant") > 0, kernel, kernel, in, out)
	to := size + 2*pad - kernel + 1
	padded := x
	if pad > 0 || rapid.Bool().Draw(g.t, "copied") {
		padded = g.add(expr.Compute("pad", []int64{size + 2*pad, size + 2*pad, in}, func(i []expr.Expr) expr.Expr {
			at := []expr.Expr{expr.SubE(i[0], expr.I(pad)), expr.SubE(i[1], expr.I(pad)), i[2]}
			return expr.Sel(inside(at, x.Shape), x.At(at...), expr.F(data, 3))
		}))
	}
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{to, to, out}, []int64{kernel, kernel, in}, func(i, r []expr.Expr) expr.Expr {
		a := padded.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), r[2])
		return expr.MulE(expr.To(array.Int32, a), expr.To(array.Int32, w.At(r[0], r[1], r[2], i[2])))
	}))
	scale := g.source(array.Float32, true, out)
	to8 := rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(g.t, "to")
	g.add(expr.Compute("requantised", sum.Shape, func(i []expr.Expr) expr.Expr {
		return requantised(sum.At(i...), scale.At(i[2]), to8)
	}))
}

// requantised is a sum times a scale as an integer of eight bits.
func requantised(sum, scale expr.Expr, to array.DType) expr.Expr {
	const f = array.Float32
	low, high := expr.To(f, expr.Lowest(to)), expr.To(f, expr.Highest(to))
	scaled := expr.Un(expr.Round, expr.MulE(expr.To(f, sum), scale))
	return expr.To(to, expr.MinE(expr.MaxE(expr.AddE(scaled, expr.F(f, 5)), low), high))
}
