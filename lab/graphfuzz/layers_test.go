package graphfuzz

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// reduce adds a reduction over some axes.
func (g *generator) reduce() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) && isFull(t) })
	if !ok {
		return
	}
	var axes []int64
	var shape []extent.Extent
	keep := int64(g.rng.IntN(2))
	for k, e := range t.dims.Extents() {
		if g.rng.IntN(2) > 0 && (len(axes) > 0 || k < t.rank()-1) {
			shape = append(shape, e)
			continue
		}
		axes = append(axes, int64(k))
		if keep == 1 {
			shape = append(shape, extent.Of(1))
		}
	}
	op := pick(g, []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"})
	g.nodeOf(op, t.dtype, extent.ShapeOf(shape...), []string{t.name, g.ints(axes...)}, integer("keepdims", keep))
}

func (g *generator) softmax() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) && isFull(t) })
	if ok {
		g.nodeOf(pick(g, []string{"Softmax", "LogSoftmax"}), t.dtype, t.dims, single(t), integer("axis", int64(g.rng.IntN(t.rank()))))
	}
}

func (g *generator) norm() {
	t, ok := g.any(func(t tensor) bool {
		return hasAxis(t) && isSingle(t) && t.shape[t.rank()-1] > 1 && !t.dims.At(t.rank()-1).IsOpen()
	})
	if !ok {
		return
	}
	last := t.shape[t.rank()-1:]
	g.nodeOf("LayerNormalization", t.dtype, t.dims, []string{t.name, g.constant(g.random(t.dtype, last)), g.constant(g.random(t.dtype, last))})
}

// matmul adds a product of two values, or of a value and a constant.
func (g *generator) matmul() {
	t, ok := g.any(func(t tensor) bool { return isFloat(t) && t.rank() >= 2 && isFull(t) })
	if !ok {
		return
	}
	depth, rows := t.dims.At(t.rank()-1), t.dims.Slice(0, t.rank()-1)
	other, ok := g.any(func(o tensor) bool {
		return o.dtype == t.dtype && isFull(o) && (o.rank() == 2 && o.dims.At(0) == depth ||
			o.rank() == t.rank() && o.dims.At(o.rank()-2) == depth && o.dims.Slice(0, o.rank()-2).Equal(rows.Slice(0, o.rank()-2)))
	})
	var shape extent.Shape
	var name string
	switch {
	case ok && g.rng.IntN(2) == 0:
		name, shape = other.name, extent.Concat(rows, other.dims.Slice(other.rank()-1, other.rank()))
	case depth.IsOpen(): // with itself
		order := make([]int64, t.rank())
		for k := range order {
			order[k] = int64(k)
		}
		slices.Reverse(order[t.rank()-2:])
		turned := extent.Concat(rows.Slice(0, t.rank()-2), extent.ShapeOf(depth, rows.At(t.rank()-2)))
		name = g.nodeOf("Transpose", t.dtype, turned, single(t), ints("perm", order...)).name
		shape = extent.Concat(rows, rows.Slice(t.rank()-2, t.rank()-1))
	default:
		n := 1 + int64(g.rng.IntN(40))
		name, shape = g.constant(g.random(t.dtype, []int64{depth.Max(), n})), extent.Concat(rows, extent.Fixed(n))
	}
	if fits(shape.Max()) {
		g.nodeOf("MatMul", t.dtype, shape, []string{t.name, name})
	}
}

func (g *generator) gemm() {
	t, ok := g.any(func(t tensor) bool {
		return isSingle(t) && t.rank() == 2 && isFull(t) && !(t.dims.At(0).IsOpen() && t.dims.At(1).IsOpen())
	})
	if !ok {
		return
	}
	transA, transB := int64(g.rng.IntN(2)), int64(g.rng.IntN(2))
	m, k, n := t.dims.At(0), t.dims.At(1), 1+int64(g.rng.IntN(30))
	if transA == 1 {
		m, k = k, m
	}
	if k.IsOpen() {
		m, k, transA = k, m, 1-transA
	}
	b := []int64{k.Max(), n}
	if transB == 1 {
		slices.Reverse(b)
	}
	shape := extent.ShapeOf(m, extent.Of(n))
	if in := []string{t.name, g.constant(g.random(t.dtype, b)), g.constant(g.random(t.dtype, []int64{n}))}; fits(shape.Max()) {
		g.nodeOf("Gemm", t.dtype, shape, in, integer("transA", transA), integer("transB", transB))
	}
}

// window is a window along one axis of an image.
type window struct{ kernel, stride, pad, dilation int64 }

func (g *generator) window() window {
	return window{1 + int64(g.rng.IntN(3)), 1 + int64(g.rng.IntN(2)), int64(g.rng.IntN(2)), 1 + int64(g.rng.IntN(2))}
}

// of returns the number of results along an axis.
func (w window) of(size extent.Extent) extent.Extent {
	return size.Plus(extent.Of(2*w.pad - (w.kernel-1)*w.dilation - 1)).Over(extent.Of(w.stride)).Plus(extent.Of(1))
}

// over returns the shape of the results of a window that moves over the last two axes of an image.
func (w window) over(t tensor) extent.Shape {
	return extent.ShapeOf(t.dims.At(0), t.dims.At(1), w.of(t.dims.At(2)), w.of(t.dims.At(3)))
}

func (w window) fits(t tensor) bool {
	reach := (w.kernel-1)*w.dilation + 1
	return t.dims.At(2).Min()+2*w.pad >= reach && t.dims.At(3).Min()+2*w.pad >= reach && w.pad < w.kernel
}

// isImage reports whether a tensor is an image with a fixed number of channels.
func isImage(t tensor) bool {
	return isSingle(t) && t.rank() == 4 && isFull(t) && !t.dims.At(1).IsOpen()
}

// conv adds a convolution, sometimes grouped or depthwise, and sometimes with a bias.
func (g *generator) conv() {
	t, ok := g.any(isImage)
	w := g.window()
	if !ok || !w.fits(t) {
		return
	}
	in, group := t.shape[1], int64(1)
	switch {
	case g.rng.IntN(4) == 0:
		group = in
	case in%2 == 0 && g.rng.IntN(4) == 0:
		group = 2
	}
	out := group * (1 + int64(g.rng.IntN(max(1, int(20/group)))))
	shape := w.over(t).With(1, extent.Of(out))
	places := []*onnx.Attribute{ints("pads", w.pad, w.pad, w.pad, w.pad)}
	if g.rng.IntN(6) == 0 {
		w.dilation = 1 // ONNX Runtime supports no others
		stride := extent.Of(w.stride)
		shape = extent.ShapeOf(t.dims.At(0), extent.Of(out), t.dims.At(2).CeilOver(stride), t.dims.At(3).CeilOver(stride))
		places = []*onnx.Attribute{text("auto_pad", pick(g, []string{"SAME_UPPER", "SAME_LOWER"}))}
	}
	if !fits(shape.Max()) {
		return
	}
	operands := []string{t.name, g.constant(g.random(t.dtype, []int64{out, in / group, w.kernel, w.kernel}))}
	if g.rng.IntN(2) == 0 {
		operands = append(operands, g.constant(g.random(t.dtype, []int64{out})))
	}
	g.nodeOf("Conv", t.dtype, shape, operands, append(places, integer("group", group), ints("kernel_shape", w.kernel, w.kernel),
		ints("strides", w.stride, w.stride), ints("dilations", w.dilation, w.dilation))...)
}

func (g *generator) convTranspose() {
	t, ok := g.any(isImage)
	w := g.window()
	if !ok || !w.fits(t) {
		return
	}
	w.dilation = 1
	grown := func(e extent.Extent) extent.Extent {
		return e.Minus(extent.Of(1)).Times(extent.Of(w.stride)).Plus(extent.Of(w.kernel - 2*w.pad))
	}
	out := 1 + int64(g.rng.IntN(8))
	shape := extent.ShapeOf(t.dims.At(0), extent.Of(out), grown(t.dims.At(2)), grown(t.dims.At(3)))
	if !fits(shape.Max()) || slices.ContainsFunc(shape.Extents(), isMaybeNone) {
		return
	}
	weights := g.constant(g.random(t.dtype, []int64{t.shape[1], out, w.kernel, w.kernel}))
	g.nodeOf("ConvTranspose", t.dtype, shape, []string{t.name, weights},
		ints("kernel_shape", w.kernel, w.kernel), ints("strides", w.stride, w.stride), ints("pads", w.pad, w.pad, w.pad, w.pad))
}

func (g *generator) pool() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && t.rank() == 4 && isFull(t) })
	w := g.window()
	w.dilation = 1
	if !ok || !w.fits(t) {
		return
	}
	if g.rng.IntN(4) == 0 {
		op := pick(g, []string{"GlobalAveragePool", "GlobalMaxPool"})
		g.nodeOf(op, t.dtype, extent.ShapeOf(t.dims.At(0), t.dims.At(1), extent.Of(1), extent.Of(1)), single(t))
		return
	}
	g.nodeOf(pick(g, []string{"MaxPool", "AveragePool"}), t.dtype, w.over(t), single(t), ints("kernel_shape", w.kernel, w.kernel),
		ints("strides", w.stride, w.stride), ints("pads", w.pad, w.pad, w.pad, w.pad))
}

func (g *generator) batchNorm() {
	t, ok := g.any(isImage)
	if !ok {
		return
	}
	c := []int64{t.shape[1]}
	variance := g.random(t.dtype, c)
	for i := range variance.Len() {
		variance.SetFloat(i, 1+variance.Float(i)*variance.Float(i))
	}
	in := []string{t.name, g.constant(g.random(t.dtype, c)), g.constant(g.random(t.dtype, c)), g.constant(g.random(t.dtype, c)), g.constant(variance)}
	g.nodeOf("BatchNormalization", array.Float32, t.dims, in)
}
