package graphfuzz

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// quantised is a value in bytes with the names of its scale and zero point. The scale is a power of two.
type quantised struct {
	tensor
	scale, zero string
	exponent    int
}

// layers generates quantised layers. All scales are powers of two, and all sums stay below 2^24 of their steps. Only
// quantisation rounds, so the bytes have a unique correct value.
type layers struct {
	*generator
	dtype array.DType
	made  []quantised
}

// integers adds, to a third of the graphs, quantised layers with a new input.
func (g *generator) integers(seed uint64) {
	g.rng = rand.New(rand.NewPCG(seed, 3))
	if g.rng.IntN(3) > 0 {
		return
	}
	l := &layers{generator: g, dtype: pick(g, []array.DType{array.Uint8, array.Int8})}
	shape := []extent.Extent{g.rows(9), extent.Of(1 + int64(g.rng.IntN(40)))}
	if g.rng.IntN(3) > 0 {
		shape = []extent.Extent{g.rows(1), extent.Of(1 + int64(g.rng.IntN(20))), g.side(), g.side()}
	}
	l.quantise(g.add(array.Float32, shape...), -6)
	for range 1 + g.rng.IntN(4) {
		pick(g, []func(quantised){l.conv, l.conv, l.product, l.product, l.add, l.maxPool, l.concat})(l.made[len(l.made)-1-g.rng.IntN(min(2, len(l.made)))])
	}
	last := l.made[len(l.made)-1]
	g.graph.Outputs = append(g.graph.Outputs, info(last.tensor))
	if g.rng.IntN(2) == 0 {
		g.graph.Outputs = append(g.graph.Outputs, info(l.floats(last)))
	}
}

// parameters returns a scale, or one per channel, and a zero point.
func (l *layers) parameters(exponents []int, zero int64, d array.DType) (scale, point string) {
	s, z := array.New(array.Float32), array.New(d)
	if len(exponents) > 1 {
		s, z = array.New(array.Float32, int64(len(exponents))), array.New(d, int64(len(exponents)))
	}
	for k, e := range exponents {
		s.SetFloat(int64(k), math.Ldexp(1, e))
		z.SetInt(int64(k), zero)
	}
	return l.constant(s), l.constant(z)
}

// result draws the quantisation of a result with a scale of the given exponent and a zero point near the middle.
func (l *layers) result(exponent int) quantised {
	zero := int64(l.rng.IntN(31) - 15)
	if l.dtype == array.Uint8 {
		zero += 128
	}
	q := quantised{exponent: exponent}
	q.scale, q.zero = l.parameters([]int{exponent}, zero, l.dtype)
	return q
}

// keep records the result of a node.
func (l *layers) keep(q quantised, made tensor) {
	q.tensor = made
	l.made = append(l.made, q)
}

func (l *layers) quantise(x tensor, exponent int) {
	if l.rng.IntN(4) == 0 {
		x = l.nodeOf("Relu", x.dtype, x.dims, single(x))
	}
	q := l.result(exponent)
	l.keep(q, l.nodeOf("QuantizeLinear", l.dtype, x.dims, []string{x.name, q.scale, q.zero}))
}

func (l *layers) floats(q quantised) tensor {
	return l.nodeOf("DequantizeLinear", array.Float32, q.dims, []string{q.name, q.scale, q.zero})
}

// weights returns bytes with one scale or one per channel. The exponents of their scales are -7 and -8.
func (l *layers) weights(axis int, shape ...int64) (codes, scale, zero string) {
	a := array.New(array.Int8, shape...)
	for i := range a.Data {
		a.Data[i] = byte(l.rng.IntN(255) - 127)
	}
	exponents := []int{-7}
	if l.rng.IntN(2) == 0 {
		exponents = make([]int, shape[axis])
		for k := range exponents {
			exponents[k] = -7 - l.rng.IntN(2)
		}
	}
	scale, zero = l.parameters(exponents, 0, array.Int8)
	return l.constant(a), scale, zero
}

// sums returns the exponent of a scale at which sums of that many terms cover the range of bytes and sometimes
// saturate.
func (l *layers) sums(of quantised, terms int64) int {
	return of.exponent - 7 + 6 + bits.Len64(uint64(terms))/2 + l.rng.IntN(3)
}

// conv adds a convolution of integers or dequantised values, optionally grouped.
func (l *layers) conv(x quantised) {
	w := l.window()
	if x.rank() != 4 || !w.fits(x.tensor) {
		return
	}
	in, group := x.shape[1], int64(1)
	switch {
	case l.rng.IntN(3) == 0:
		group = in
	case in%2 == 0 && l.rng.IntN(3) == 0:
		group = 2
	}
	out := group * (1 + int64(l.rng.IntN(max(1, int(20/group)))))
	shape := w.over(x.tensor).With(1, extent.Of(out))
	if !fits(shape.Max()) {
		return
	}
	codes, scale, zero := l.weights(0, out, in/group, w.kernel, w.kernel)
	attrs := []*onnx.Attribute{integer("group", group), ints("kernel_shape", w.kernel, w.kernel),
		ints("strides", w.stride, w.stride), ints("pads", w.pad, w.pad, w.pad, w.pad), ints("dilations", w.dilation, w.dilation)}
	exponent := l.sums(x, in/group*w.kernel*w.kernel)
	if l.rng.IntN(2) == 0 {
		q := l.result(exponent)
		l.keep(q, l.nodeOf("QLinearConv", l.dtype, shape, []string{x.name, x.scale, x.zero, codes, scale, zero, q.scale, q.zero}, attrs...))
		return
	}
	f := l.nodeOf("DequantizeLinear", array.Float32, extent.Fixed(out, in/group, w.kernel, w.kernel), []string{codes, scale, zero}, integer("axis", 0))
	operands := []string{l.floats(x).name, f.name}
	if l.rng.IntN(2) == 0 {
		operands = append(operands, l.constant(l.random(array.Float32, []int64{out})))
	}
	l.quantise(l.nodeOf("Conv", array.Float32, shape, operands, attrs...), exponent)
}

// product multiplies rows by a matrix.
func (l *layers) product(x quantised) {
	if x.rank() != 2 {
		return
	}
	depth, columns := x.shape[1], 1+int64(l.rng.IntN(40))
	codes, scale, zero := l.weights(1, depth, columns)
	shape := x.dims.With(1, extent.Of(columns))
	exponent := l.sums(x, depth)
	if l.rng.IntN(2) == 0 {
		q := l.result(exponent)
		l.keep(q, l.nodeOf("QLinearMatMul", l.dtype, shape, []string{x.name, x.scale, x.zero, codes, scale, zero, q.scale, q.zero}))
		return
	}
	f := l.nodeOf("DequantizeLinear", array.Float32, extent.Fixed(depth, columns), []string{codes, scale, zero}, integer("axis", 1))
	l.quantise(l.nodeOf("MatMul", array.Float32, shape, []string{l.floats(x).name, f.name}), exponent)
}

// add adds the sum of two quantised values of one shape, possibly the same value twice.
func (l *layers) add(x quantised) {
	other := x
	for _, o := range l.made {
		if o.dims.Equal(x.dims) && max(o.exponent-x.exponent, x.exponent-o.exponent) < 8 {
			other = o
			break
		}
	}
	exponent := max(x.exponent, other.exponent) + l.rng.IntN(2)
	if l.rng.IntN(2) == 0 {
		l.quantise(l.nodeOf("Add", array.Float32, x.dims, []string{l.floats(x).name, l.floats(other).name}), exponent)
		return
	}
	q := l.result(exponent)
	l.keep(q, l.nodeOf("QLinearAdd", l.dtype, x.dims, []string{x.name, x.scale, x.zero, other.name, other.scale, other.zero, q.scale, q.zero}))
	l.graph.Nodes[len(l.graph.Nodes)-1].Domain = runtimeDomain
}

// maxPool adds a maximum over bytes.
func (l *layers) maxPool(x quantised) {
	w := l.window()
	w.dilation = 1
	if x.rank() != 4 || !w.fits(x.tensor) {
		return
	}
	l.keep(x, l.nodeOf("MaxPool", l.dtype, w.over(x.tensor), single(x.tensor), ints("kernel_shape", w.kernel, w.kernel),
		ints("strides", w.stride, w.stride), ints("pads", w.pad, w.pad, w.pad, w.pad)))
}

// concat concatenates a value of bytes with itself.
func (l *layers) concat(x quantised) {
	shape := x.dims.With(1, x.dims.At(1).Times(extent.Of(2)))
	if shape.Max()[1] <= 64 && fits(shape.Max()) {
		l.keep(x, l.nodeOf("Concat", l.dtype, shape, []string{x.name, x.name}, integer("axis", 1)))
	}
}
