package graphfuzz

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// reduce adds a reduction over some axes.
func (g *generator) reduce() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) })
	if !ok {
		return
	}
	var axes, shape []int64
	keep := int64(g.rng.IntN(2))
	for k, e := range t.shape {
		if g.rng.IntN(2) > 0 && (len(axes) > 0 || k < t.rank()-1) {
			shape = append(shape, e)
			continue
		}
		axes = append(axes, int64(k))
		if keep == 1 {
			shape = append(shape, 1)
		}
	}
	op := pick(g, []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"})
	g.node(op, t.dtype, shape, []string{t.name, g.ints(axes...)}, integer("keepdims", keep))
}

func (g *generator) softmax() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) })
	if ok {
		g.node(pick(g, []string{"Softmax", "LogSoftmax"}), t.dtype, t.shape, single(t), integer("axis", int64(g.rng.IntN(t.rank()))))
	}
}

func (g *generator) norm() {
	t, ok := g.any(func(t tensor) bool { return hasAxis(t) && isSingle(t) && t.shape[t.rank()-1] > 1 })
	if !ok {
		return
	}
	last := t.shape[t.rank()-1:]
	g.node("LayerNormalization", t.dtype, t.shape, []string{t.name, g.constant(g.random(t.dtype, last)), g.constant(g.random(t.dtype, last))})
}

// matmul adds a product of two values, or of a value and a constant.
func (g *generator) matmul() {
	t, ok := g.any(func(t tensor) bool { return isFloat(t) && t.rank() >= 2 })
	if !ok {
		return
	}
	k := t.shape[t.rank()-1]
	other, ok := g.any(func(o tensor) bool { return o.dtype == t.dtype && o.rank() == 2 && o.shape[0] == k })
	var name string
	var n int64
	if ok && g.rng.IntN(2) == 0 {
		name, n = other.name, other.shape[1]
	} else {
		n = 1 + int64(g.rng.IntN(40))
		name = g.constant(g.random(t.dtype, []int64{k, n}))
	}
	shape := append(slices.Clone(t.shape[:t.rank()-1]), n)
	if fits(shape) {
		g.node("MatMul", t.dtype, shape, []string{t.name, name})
	}
}

func (g *generator) gemm() {
	t, ok := g.any(func(t tensor) bool { return isSingle(t) && t.rank() == 2 })
	if !ok {
		return
	}
	transA, transB := int64(g.rng.IntN(2)), int64(g.rng.IntN(2))
	m, k, n := t.shape[0], t.shape[1], 1+int64(g.rng.IntN(30))
	if transA == 1 {
		m, k = k, m
	}
	b := []int64{k, n}
	if transB == 1 {
		slices.Reverse(b)
	}
	if in := []string{t.name, g.constant(g.random(t.dtype, b)), g.constant(g.random(t.dtype, []int64{n}))}; fits([]int64{m, n}) {
		g.node("Gemm", t.dtype, []int64{m, n}, in, integer("transA", transA), integer("transB", transB))
	}
}

// window is a window along one axis of an image.
type window struct{ kernel, stride, pad, dilation int64 }

func (g *generator) window() window {
	return window{1 + int64(g.rng.IntN(3)), 1 + int64(g.rng.IntN(2)), int64(g.rng.IntN(2)), 1 + int64(g.rng.IntN(2))}
}

func (w window) out(extent int64) int64 {
	return (extent+2*w.pad-(w.kernel-1)*w.dilation-1)/w.stride + 1
}

func (w window) fits(t tensor) bool {
	reach := (w.kernel-1)*w.dilation + 1
	return t.shape[2]+2*w.pad >= reach && t.shape[3]+2*w.pad >= reach && w.pad < w.kernel
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
	shape := []int64{t.shape[0], out, w.out(t.shape[2]), w.out(t.shape[3])}
	if !fits(shape) {
		return
	}
	operands := []string{t.name, g.constant(g.random(t.dtype, []int64{out, in / group, w.kernel, w.kernel}))}
	if g.rng.IntN(2) == 0 {
		operands = append(operands, g.constant(g.random(t.dtype, []int64{out})))
	}
	g.node("Conv", t.dtype, shape, operands, integer("group", group), ints("kernel_shape", w.kernel, w.kernel),
		ints("strides", w.stride, w.stride), ints("pads", w.pad, w.pad, w.pad, w.pad), ints("dilations", w.dilation, w.dilation))
}

func (g *generator) pool() {
	t, ok := g.any(isImage)
	w := g.window()
	w.dilation = 1
	if !ok || !w.fits(t) {
		return
	}
	if g.rng.IntN(4) == 0 {
		g.node("GlobalAveragePool", t.dtype, []int64{t.shape[0], t.shape[1], 1, 1}, single(t))
		return
	}
	shape := []int64{t.shape[0], t.shape[1], w.out(t.shape[2]), w.out(t.shape[3])}
	g.node(pick(g, []string{"MaxPool", "AveragePool"}), t.dtype, shape, single(t), ints("kernel_shape", w.kernel, w.kernel),
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
	g.node("BatchNormalization", array.Float32, t.shape, in)
}
