package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// conv adds a convolution over height and width with a padding stage.
func (g *dag) conv() {
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64, array.Int32}).Draw(g.t, "dtype")
	size, in, out := g.int("size", 3, 9), g.int("in", 1, 6), g.int("out", 1, 20)
	kernel, stride, dilation, pad := g.int("kernel", 1, 3), g.int("stride", 1, 2), g.int("dilation", 1, 2), g.int("pad", 0, 1)
	reach := (kernel-1)*dilation + 1
	if reach > size+2*pad {
		kernel, reach = 1, 1
	}
	to := (size+2*pad-reach)/stride + 1
	x, w := g.source(d, false, 1, size, size, in), g.source(d, true, kernel, kernel, in, out)
	padded := g.add(padTo("pad", x, []int64{1, size + 2*pad, size + 2*pad, in}, []int64{0, pad, pad, 0}, expr.Zero(d)))
	conv := g.add(expr.ReduceOver("conv", expr.Sum, []int64{1, to, to, out}, []int64{kernel, kernel, in}, func(i, r []expr.Expr) expr.Expr {
		place := func(k int) expr.Expr {
			return expr.AddE(expr.MulE(i[k+1], expr.I(stride)), expr.MulE(r[k], expr.I(dilation)))
		}
		return expr.MulE(padded.At(i[0], place(0), place(1), r[2]), w.At(r[0], r[1], r[2], i[3]))
	}))
	bias := g.source(d, true, out)
	g.add(expr.Compute("act", conv.Shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(expr.AddE(conv.At(i...), bias.At(i[3])), expr.Zero(d))
	}))
}

// depthwise adds a filter of each channel, channels outermost or innermost.
func (g *dag) depthwise() {
	size, channels, kernel := g.int("size", 3, 8), g.int("channels", 1, 20), g.int("kernel", 1, 3)
	x, w := g.source(array.Float32, false, size, size, channels), g.source(array.Float32, true, kernel, kernel, channels)
	stride := g.int("stride", 1, 2)
	if pad := g.int("pad", 0, 1); pad > 0 {
		inner := x
		size += 2
		x = g.add(padTo("pad", inner, []int64{size, size, channels}, []int64{1, 1, 0}, expr.Zero(inner.DType)))
	}
	to := (size-kernel)/stride + 1
	g.add(expr.ReduceOver("dw", expr.Sum, []int64{to, to, channels}, []int64{kernel, kernel}, func(i, r []expr.Expr) expr.Expr {
		at := func(k int) expr.Expr { return expr.AddE(expr.MulE(i[k], expr.I(stride)), r[k]) }
		return expr.MulE(x.At(at(0), at(1), i[2]), w.At(r[0], r[1], i[2]))
	}))
}

func (g *dag) matmul() {
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float64, array.Int64}).Draw(g.t, "dtype")
	m, n, k := g.int("m", 1, 17), g.int("n", 1, 40), g.int("k", 1, 13)
	a, b := g.source(d, false, m, k), g.source(d, rapid.Bool().Draw(g.t, "constant"), k, n)
	g.add(expr.ReduceOver("mm", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	}))
}

// pool adds a maximum or a sum over windows that overlap the border.
func (g *dag) pool() {
	c, size, channels := g.combiner(array.Float32), g.int("size", 2, 9), g.int("channels", 1, 17)
	kernel, stride := g.int("kernel", 1, 3), g.int("stride", 1, 2)
	x := g.source(array.Float32, false, size, size, channels)
	g.add(expr.ReduceOver("pool", c, []int64{(size + 1) / stride, (size + 1) / stride, channels}, []int64{kernel, kernel}, func(i, r []expr.Expr) expr.Expr {
		at := []expr.Expr{
			expr.SubE(expr.AddE(expr.MulE(i[0], expr.I(stride)), r[0]), expr.I(1)),
			expr.SubE(expr.AddE(expr.MulE(i[1], expr.I(stride)), r[1]), expr.I(1)), i[2],
		}
		return expr.Sel(inside(at, x.Shape), x.At(at...), c.Identity(array.Float32))
	}))
	g.add(expr.Compute("finite", g.tensors[0].Shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(expr.MinE(g.tensors[0].At(i...), expr.F(array.Float32, 99)), expr.F(array.Float32, -99))
	}))
}

func (g *dag) softmax() {
	rows, n := g.int("rows", 1, 9), g.int("n", 1, 37)
	x := g.source(array.Float32, false, rows, n)
	largest := g.add(expr.ReduceOver("most", expr.Maximum, []int64{rows}, []int64{n}, func(i, r []expr.Expr) expr.Expr { return x.At(i[0], r[0]) }))
	e := g.add(expr.Compute("e", x.Shape, func(i []expr.Expr) expr.Expr {
		return expr.Un(expr.Exp, expr.SubE(x.At(i...), largest.At(i[0])))
	}))
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{rows}, []int64{n}, func(i, r []expr.Expr) expr.Expr { return e.At(i[0], r[0]) }))
	g.add(expr.Compute("softmax", x.Shape, func(i []expr.Expr) expr.Expr { return expr.DivE(e.At(i...), sum.At(i[0])) }))
}

// normalized draws a softmax or a normalisation over some axes of a tensor of rank 1 to 3.
func (g *dag) normalized() {
	shape := make([]int64, g.int("rank", 1, 3))
	normal := make([]bool, len(shape))
	var kept, own []int64
	for k := range shape {
		shape[k] = g.int("extent", 1, []int64{1400, 37, 11}[len(shape)-1])
		normal[k] = rapid.Bool().Draw(g.t, "normalized")
		if normal[k] {
			own = append(own, shape[k])
		} else {
			kept = append(kept, shape[k])
		}
	}
	if len(own) == 0 {
		normal[len(shape)-1], own, kept = true, shape[len(shape)-1:], kept[:len(kept)-1]
	}
	at := func(i, r []expr.Expr) []expr.Expr {
		var index []expr.Expr
		for _, n := range normal {
			if n {
				index, r = append(index, r[0]), r[1:]
			} else {
				index, i = append(index, i[0]), i[1:]
			}
		}
		return index
	}
	outer := func(i []expr.Expr) []expr.Expr {
		var index []expr.Expr
		for k, n := range normal {
			if !n {
				index = append(index, i[k])
			}
		}
		return index
	}
	x := g.source(array.Float32, false, shape...)
	over := func(c expr.Combiner, term func(e expr.Expr, i []expr.Expr) expr.Expr) *expr.Tensor {
		return expr.ReduceOver("over", c, kept, own, func(i, r []expr.Expr) expr.Expr { return term(x.At(at(i, r)...), i) })
	}
	if rapid.Bool().Draw(g.t, "softmax") {
		largest := over(expr.Maximum, func(e expr.Expr, _ []expr.Expr) expr.Expr { return e })
		y := g.add(expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
			return expr.Un(expr.Exp, expr.SubE(x.At(i...), largest.At(outer(i)...)))
		}))
		x = y
		sum := over(expr.Sum, func(e expr.Expr, _ []expr.Expr) expr.Expr { return e })
		g.add(expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr { return expr.DivE(y.At(i...), sum.At(outer(i)...)) }))
		return
	}
	sum := over(expr.Sum, func(e expr.Expr, _ []expr.Expr) expr.Expr { return e })
	mean := func(i []expr.Expr) expr.Expr {
		return expr.MulE(sum.At(i...), expr.F(array.Float32, 1/float64(array.Elements(own))))
	}
	squares := over(expr.Sum, func(e expr.Expr, i []expr.Expr) expr.Expr {
		d := expr.SubE(e, mean(i))
		return expr.MulE(d, d)
	})
	scale := expr.Compute("scale", kept, func(i []expr.Expr) expr.Expr {
		return expr.DivE(expr.F(array.Float32, 1), expr.Un(expr.Sqrt, expr.AddE(squares.At(i...), expr.F(array.Float32, 0.25))))
	})
	g.add(expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		return expr.MulE(expr.SubE(x.At(i...), mean(outer(i))), scale.At(outer(i)...))
	}))
}

// attention draws a softmax attention with batches inside or outside the rows, as package op expresses it.
func (g *dag) attention() {
	batch, m, n, depth, columns := g.int("batch", 1, 3), g.int("m", 1, 20), g.int("n", 1, 40), g.int("depth", 1, 9), g.int("columns", 1, 20)
	inside := rapid.Bool().Draw(g.t, "inside")
	operand := func(rows, columns int64) func(h, i, j expr.Expr) expr.Expr {
		if inside {
			x := g.source(array.Float32, false, rows, batch, columns)
			return func(h, i, j expr.Expr) expr.Expr { return x.At(i, h, j) }
		}
		x := g.source(array.Float32, false, batch, rows, columns)
		return func(h, i, j expr.Expr) expr.Expr { return x.At(h, i, j) }
	}
	q, k, v := operand(m, depth), operand(n, depth), operand(n, columns)
	mask := g.source(array.Float32, rapid.Bool().Draw(g.t, "known mask"), m, n)
	keys := expr.Compute("keys", []int64{batch, depth, n}, func(i []expr.Expr) expr.Expr { return k(i[0], i[2], i[1]) })
	values := expr.Compute("values", []int64{batch, n, columns}, func(i []expr.Expr) expr.Expr { return v(i[0], i[1], i[2]) })
	shape, kept := []int64{batch, m, n}, []int64{batch, m}
	scores := expr.ReduceOver("scores", expr.Sum, shape, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(q(i[0], i[1], r[0]), keys.At(i[0], r[0], i[2]))
	})
	masked := expr.Compute("masked", shape, func(i []expr.Expr) expr.Expr { return expr.AddE(scores.At(i...), mask.At(i[1], i[2])) })
	largest := expr.ReduceOver("largest", expr.Maximum, kept, shape[2:], func(i, r []expr.Expr) expr.Expr { return masked.At(i[0], i[1], r[0]) })
	exp := expr.Compute("exp", shape, func(i []expr.Expr) expr.Expr {
		return expr.Un(expr.Exp, expr.SubE(masked.At(i...), largest.At(i[0], i[1])))
	})
	sum := expr.ReduceOver("sum", expr.Sum, kept, shape[2:], func(i, r []expr.Expr) expr.Expr { return exp.At(i[0], i[1], r[0]) })
	total := expr.Compute("total", kept, func(i []expr.Expr) expr.Expr { return expr.DivE(expr.F(array.Float32, 1), sum.At(i...)) })
	mixed := expr.ReduceOver("mixed", expr.Sum, []int64{batch, m, columns}, []int64{n}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(exp.At(i[0], i[1], r[0]), values.At(i[0], r[0], i[2]))
	})
	if inside {
		g.add(expr.Compute("out", []int64{m, batch, columns}, func(i []expr.Expr) expr.Expr {
			return expr.MulE(mixed.At(i[1], i[0], i[2]), total.At(i[1], i[0]))
		}))
		return
	}
	g.add(expr.Compute("out", mixed.Shape, func(i []expr.Expr) expr.Expr { return expr.MulE(mixed.At(i...), total.At(i[0], i[1])) }))
}

// DrawWindows draws a windowed reduction of each channel: a depthwise convolution or a pool, padded or not.
func DrawWindows(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	if rapid.Bool().Draw(t, "pool") {
		g.pool()
		return workloadOf(t, g.tensors[0])
	}
	g.depthwise()
	return workloadOf(t, g.tensors[len(g.tensors)-1])
}
