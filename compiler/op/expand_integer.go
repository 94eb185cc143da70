package op

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var integerDefs = []Def{
	def("MatMulInteger", 2, 4, func(e *expansion) []*Item {
		return only(e.integerMatMul(e.tensor(0), e.tensor(2), e.tensor(1), e.tensor(3)))
	}),
	def("ConvInteger", 2, 4, func(e *expansion) []*Item {
		return only(e.integerConv(e.tensor(0), e.tensor(2), e.tensor(1), e.tensor(3)))
	}),
	def("QLinearMatMul", 8, 8, (*expansion).qLinearMatMul),
	def("QLinearConv", 8, 9, (*expansion).qLinearConv),
}

// integerMatMul is (a-aZero) times (b-bZero) in i32. Zero points are nil, single numbers, or one per row of a and
// column of b.
//
// With known b it is a times b' minus aZero times the column sums of b', where b' is b with its zero points
// subtracted: then the product is one of narrow integers, followed by one addition per column. Where b' does not fit
// into bytes, only a part of its zero points is subtracted, and the row sums of a times the rest from the product.
func (e *expansion) integerMatMul(a, aZero, b, bZero *Value) *Value {
	if a.Shape.Rank() == 0 || b.Shape.Rank() == 0 {
		e.fail("operands %v and %v must not be scalars", a.Type, b.Type)
	}
	if aZero != nil && aZero.Shape.Rank() == 1 && a.Shape.Rank() > 1 {
		aZero = e.reshape(aZero, extent.ShapeOf(aZero.Shape.Elements(), extent.Of(1)))
	}
	if !isKnown(b) || !isKnown(bZero) {
		return e.op(MatMul, nil, e.centred(a, aZero), e.centred(b, bZero))
	}
	centre, rest := bZero, (*Value)(nil)
	if columns := b.Shape.Rank() - 1; columns > 0 {
		centre, rest = e.byteCentre(b, bZero, b.Const.Shape[columns])
	}
	b = e.narrow(b, centre)
	product := e.op(IntegerMatMul, nil, a, b)
	if rest != nil {
		product = e.lessZero(product, rest, e.op(ReduceSum, nil, e.toInt32(a), e.ints(-1)))
	}
	if isZero(aZero) {
		return product
	}
	sums := e.columnSums(b, a.Shape.Rank() > 1)
	if rest != nil {
		sums = e.lessZero(sums, rest, e.scalar(array.Int32, float64(fixedAt(b, b.Shape.Rank()-2))))
	}
	return e.lessZero(product, aZero, sums)
}

// byteCentre returns the part of a zero point to subtract from known integers so that bytes stay bytes, and the rest
// in i32, expanded to a shape. The rest is nil if the whole fits.
func (e *expansion) byteCentre(v, zero *Value, shape ...int64) (centre, rest *Value) {
	if v.DType.Bytes() > 1 || e.largest(v, zero) < 1<<7 {
		return zero, nil
	}
	if centre = e.scalar(v.DType, 0); zero == nil {
		zero = centre
	}
	if v.DType == array.Uint8 {
		centre = e.scalar(v.DType, 128)
	}
	// It is expanded so that products by other zero points have the same kernels.
	return centre, e.op(Expand, nil, e.centred(zero, centre), e.ints(shape...))
}

// columnSums returns the column sums of b, as a row if requested. They are a row of ones times b, which needs no
// copy of b in a wider type.
func (e *expansion) columnSums(b *Value, row bool) *Value {
	depth := fixedAt(b, max(0, b.Shape.Rank()-2))
	if row && b.Shape.Rank() > 1 {
		return e.op(IntegerMatMul, nil, e.ones(1, depth), b)
	}
	return e.op(IntegerMatMul, nil, e.ones(depth), b)
}

// ones returns a known tensor of ones, in i8.
func (e *expansion) ones(shape ...int64) *Value {
	return e.known(&array.Array{DType: array.Int8, Shape: shape, Data: bytes.Repeat([]byte{1}, int(array.Elements(shape)))})
}

// lessZero subtracts from a product the contribution of an operand's zero point, which the other's sums multiply.
func (e *expansion) lessZero(product, zero, sums *Value) *Value {
	return e.op(Sub, nil, product, e.op(Mul, nil, e.toInt32(zero), sums))
}

// integerConv is the convolution of x-xZero with w-wZero in i32, by the node's own attributes. xZero is nil or a
// single number; wZero may have one per output channel. Known weights stay bytes as in integerMatMul.
func (e *expansion) integerConv(x, xZero, w, wZero *Value) *Value {
	if x.Shape.Rank() < 3 || w.Shape.Rank() != x.Shape.Rank() {
		e.fail("input %v and weights %v do not fit", x.Type, w.Type)
	}
	if wZero != nil && wZero.Shape.Rank() == 1 {
		wZero = e.along(wZero, 0, int64(w.Shape.Rank()))
	}
	attrs := slices.Collect(maps.Values(e.node.Attrs))
	if !isKnown(w) || !isKnown(wZero) {
		return e.op(IntegerConv, attrs, e.centred(x, xZero), e.centred(w, wZero))
	}
	rank, kernel := int64(w.Shape.Rank()), w.Const.Shape[1:]
	centre, rest, ones := wZero, (*Value)(nil), e.ones(append([]int64{1}, kernel...)...)
	if e.node.Int("group", 1) == 1 { // of groups, each kernel has few weights
		centre, rest = e.byteCentre(w, wZero, append([]int64{w.Const.Shape[0]}, slices.Repeat([]int64{1}, w.Shape.Rank()-1)...)...)
	}
	image, w := e.padChannels(x, e.narrow(w, centre))
	var padding []*Value
	if !isZero(xZero) {
		padding = []*Value{xZero}
	}
	sum := e.op(IntegerConv, attrs, append([]*Value{image, w}, padding...)...)
	if rest != nil {
		rest = e.along(rest, 1, rank)
		sum = e.lessZero(sum, rest, e.op(IntegerConv, attrs, append([]*Value{x, ones}, padding...)...))
	}
	if isZero(xZero) {
		return sum
	}
	terms := array.Elements(w.Const.Shape[1:])
	sums := e.along(e.op(IntegerMatMul, nil, e.reshape(w, extent.Fixed(w.Const.Shape[0], terms)), e.ones(terms)), 1, rank)
	if rest != nil {
		sums = e.lessZero(sums, rest, e.scalar(array.Int32, float64(array.Elements(kernel))))
	}
	return e.lessZero(sum, e.reshape(xZero, extent.Fixed()), sums)
}

// padChannels adds channels to an image and to known weights, such as those of the first convolution of a network
// with three colours, so that instructions can multiply whole groups of neighbours. The added weights are zero and
// leave the result unchanged.
func (e *expansion) padChannels(x, w *Value) (image, weights *Value) {
	channels := w.Const.Shape[1]
	missing := missingChannels(channels)
	if missing == 0 || missing > channels || e.node.Int("group", 1) != 1 || x.DType.Bytes() > 1 {
		return x, w
	}
	pads := make([]int64, 2*x.Shape.Rank())
	pads[x.Shape.Rank()+1] = missing
	return e.op(Pad, nil, x, e.ints(pads...)), e.op(Pad, nil, w, e.ints(pads...))
}

// missingChannels returns the number of channels missing from a whole group.
func missingChannels(channels int64) int64 { return (dotTerms - channels%dotTerms) % dotTerms }

// isKnown reports whether an operand is a constant or was omitted.
func isKnown(v *Value) bool { return v == nil || v.Const != nil }

// isZero reports whether an operand was omitted or is a zero constant.
func isZero(v *Value) bool {
	return v == nil || v.Const != nil && v.Const.IsZero()
}

func (e *expansion) toInt32(v *Value) *Value { return e.cast(array.Int32, v) }

func (e *expansion) toFloat32(v *Value) *Value { return e.cast(array.Float32, v) }

// centred returns a value minus its zero point, in i32 unless there is nothing to subtract.
func (e *expansion) centred(v, zero *Value) *Value {
	v = e.toInt32(v)
	if isZero(zero) {
		return v
	}
	return e.op(Sub, nil, v, e.toInt32(zero))
}

// narrow is centred in the smallest signed type that holds the differences of known integers. Most need no
// conversion, and some take hundreds of megabytes: there is no copy in a wider type.
func (e *expansion) narrow(v, zero *Value) *Value {
	if v.DType == array.Int8 && isZero(zero) {
		return v
	}
	if !isKnown(v) || !isKnown(zero) {
		return e.centred(v, zero)
	}
	d := array.Int32
	switch largest := e.largest(v, zero); {
	case largest < 1<<7:
		d = array.Int8
	case largest < 1<<15:
		d = array.Int16
	}
	a := e.Budget().array(d, v.Const.Shape...)
	e.eachCentred(v, zero, a.SetInt)
	return e.known(a)
}

// largest returns the largest magnitude of known integers minus their zero point, where negative ones count one less.
func (e *expansion) largest(v, zero *Value) (magnitude int64) {
	e.eachCentred(v, zero, func(_, x int64) { magnitude = max(magnitude, x, -x-1) })
	return magnitude
}

// eachCentred calls visit with the position of each integer and its difference to the zero point, which broadcasts.
func (e *expansion) eachCentred(value, zeroPoint *Value, visit func(i, x int64)) {
	v, zero := value.Const, array.New(array.Int8)
	if zeroPoint != nil {
		zero = zeroPoint.Const
	}
	if shape, err := Broadcast(extent.Fixed(v.Shape...), extent.Fixed(zero.Shape...)); err != nil || !shape.Equal(extent.Fixed(v.Shape...)) {
		e.fail("zero point %v does not fit %v", zeroPoint.Type, value.Type)
	}
	e.Budget().Steps(float64(v.Len()))
	steps, axis := make([]int64, len(v.Shape)), len(v.Shape)-len(zero.Shape)
	for k, extent := range zero.Shape {
		if extent != 1 {
			steps[axis+k] = array.Elements(zero.Shape[k+1:])
		}
	}
	shape, row := v.Shape, len(v.Shape)-1
	for i := int64(0); i < v.Len(); {
		first, position := int64(0), i/array.Elements(shape[row:])
		for k := row - 1; k >= 0; k-- {
			first += position % shape[k] * steps[k]
			position /= shape[k]
		}
		for j := range shape[row] {
			visit(i, v.Int(i)-zero.Int(first+j*steps[row]))
			i++
		}
	}
}

// requantize converts sums to integers of the zero point's type: sums times factor, rounded, plus the zero point.
func (e *expansion) requantize(sums, factor, zero *Value) *Value {
	scaled := e.op(Mul, nil, e.toFloat32(sums), factor)
	return e.quantize(onnx.DataType(zero.DType), scaled, e.scalar(array.Float32, 1), zero)
}

// ratio returns a*b/c in f32.
func (e *expansion) ratio(a, b, c *Value) *Value {
	return e.op(Div, nil, e.op(Mul, nil, e.toFloat32(a), e.toFloat32(b)), e.toFloat32(c))
}

// perRow reshapes a vector to broadcast along rows of a matrix.
func (e *expansion) perRow(v *Value) *Value {
	if v == nil || v.Shape.Rank() != 1 {
		return v
	}
	if v.Shape.At(0).Is(1) {
		return e.reshape(v, extent.Fixed())
	}
	return e.reshape(v, extent.ShapeOf(v.Shape.At(0), extent.Of(1)))
}

func (e *expansion) qLinearMatMul() []*Item {
	in := e.tensors()
	sums := e.integerMatMul(in[0], in[2], in[3], in[5])
	factor := e.ratio(e.perRow(in[1]), in[4], e.perRow(in[6]))
	return only(e.requantize(sums, factor, e.perRow(in[7])))
}

// qLinearConv adds the bias, whose scale is the product of the scales of input and weights, before rounding.
func (e *expansion) qLinearConv() []*Item {
	in := e.tensors()
	sums := e.integerConv(in[0], in[2], in[3], in[5])
	rank := int64(in[0].Shape.Rank())
	if len(in) > 8 && in[8] != nil {
		sums = e.op(Add, nil, sums, e.along(in[8], 1, rank))
	}
	scale := in[4]
	if scale.Shape.Rank() == 1 {
		scale = e.along(scale, 1, rank)
	}
	return only(e.requantize(sums, e.ratio(e.oneForAll(in[1]), scale, e.oneForAll(in[6])), e.oneForAll(in[7])))
}
