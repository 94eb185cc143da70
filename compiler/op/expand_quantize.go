package op

import (
	"cmp"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var expandQuantizeDefs = []Def{
	def("QuantizeLinear", 2, 3, (*expansion).quantizeLinear),
	def("DequantizeLinear", 2, 3, (*expansion).dequantizeLinear),
	def("DynamicQuantizeLinear", 1, 1, (*expansion).dynamicQuantizeLinear),
	def("CastLike", 2, 2, (*expansion).castLike),
}

// dataType returns the TensorProto.DataType of the value.
func (v *Value) dataType() int64 {
	return cmp.Or(v.Narrow, int64(onnx.DataType(v.DType)))
}

// castLike is a Cast to the type of operand 1, whose shape does not matter.
func (e *expansion) castLike() []*Item {
	x, like := e.tensor(0), e.tensor(1)
	return only(e.op(Cast, attributes{intOf("to", like.dataType()), intOf("saturate", e.node.Int("saturate", 1))}, x))
}

func (e *expansion) quantizeLinear() []*Item {
	x, scale, zero := e.tensor(0), e.tensor(1), e.tensor(2)
	to := e.node.Int("output_dtype", 0)
	if to == 0 {
		to = int64(onnx.DataType(array.Uint8))
		if zero != nil {
			to = zero.dataType()
		}
	}
	if from := x.From; from != nil && x.Const == nil && scale.Const != nil && isKnown(zero) && scale.Shape.Elements().Is(1) {
		again := &Dequantised{Integer: from.Integer, Scale: scale, Zero: zero}
		if to == from.Integer.dataType() && from.Scale.Shape.Elements().Is(1) && isKnown(from.Scale) && isKnown(from.Zero) && sameQuantisation(from, again) {
			return only(from.Integer)
		}
	}
	scale, zero = e.perElement(scale, x.Shape), e.perElement(zero, x.Shape)
	switch d := onnx.NarrowType(to); d {
	case array.Invalid:
		return only(e.quantize(int32(to), x, scale, zero))
	case array.Float32:
		return only(e.quantizeFloat8(to, x, scale, zero))
	default:
		low, high := fourBits(d)
		y := e.op("Clip", nil, e.quantize(onnx.DataType(d), x, scale, zero), e.scalar(d, low), e.scalar(d, high))
		if y != nil {
			y.Narrow = to
		}
		return only(y)
	}
}

// quantizeFloat8 divides by the scale, adds the zero point and rounds to 8-bit floats.
func (e *expansion) quantizeFloat8(to int64, x, scale, zero *Value) *Value {
	y := e.op(Div, nil, x, e.cast(x.DType, scale))
	if zero != nil {
		y = e.op(Add, nil, y, e.cast(x.DType, zero))
	}
	return e.op(Cast, attributes{intOf("to", to), intOf("saturate", e.node.Int("saturate", 1))}, y)
}

// dequantizeFloat8 returns 8-bit floats minus the zero point, times the scale, as the TensorProto.DataType to.
func (e *expansion) dequantizeFloat8(to int64, x, scale, zero *Value) *Value {
	y := e.cast(scale.DType, x)
	if zero != nil {
		y = e.op(Sub, nil, y, e.cast(scale.DType, zero))
	}
	return e.op(Cast, attributes{intOf("to", to)}, e.op(Mul, nil, y, scale))
}

func (e *expansion) quantize(to int32, x, scale, zero *Value) *Value {
	return e.op(Quantize, attributes{intOf("to", int64(to))}, x, scale, zero)
}

func (e *expansion) dequantizeLinear() []*Item {
	x, scale, zero := e.tensor(0), e.tensor(1), e.tensor(2)
	to := cmp.Or(e.node.Int("output_dtype", 0), scale.dataType())
	if _, ok := float8Formats[x.Narrow]; ok {
		return only(e.dequantizeFloat8(to, x, e.perElement(scale, x.Shape), e.perElement(zero, x.Shape)))
	}
	axis := e.node.Int("axis", 1)
	if axis < 0 {
		axis += int64(x.Shape.Rank())
	}
	from := &Dequantised{Integer: x, Scale: scale, Zero: zero, Axis: axis, Block: e.node.Int("block_size", 0)}
	var result *Value
	if e.node.Weights && isBlockWeights(from) {
		result = e.dequantisedWeights(from, to)
	} else {
		result = e.op(Dequantize, attributes{intOf("to", to)}, x, e.perElement(scale, x.Shape), e.perElement(zero, x.Shape))
	}
	if result != nil {
		result.From = from
	}
	return only(result)
}

// dequantisedWeights returns known weights as floats, computed at run time. Whole blocks get an axis of their own.
func (e *expansion) dequantisedWeights(from *Dequantised, to int64) *Value {
	x, scale, zero := from.Integer, from.Scale, from.Zero
	shape := x.Shape
	if from.Block == 0 || scale.Shape.Elements().Is(1) {
		scale, zero = e.perPosition(scale, shape, from.Axis, 0), e.perPosition(zero, shape, from.Axis, 0)
	} else {
		axis := int(from.Axis)
		single := inserted(scale.Shape, axis+1, 1)
		if x, scale = e.reshape(x, inserted(scale.Shape, axis+1, from.Block)), e.reshape(scale, single); zero != nil {
			zero = e.reshape(zero, single)
		}
	}
	n := Node{Name: e.node.Name, Op: Dequantize, Opset: expandedOpset, Outputs: 1, Weights: true}
	n.Attrs = map[string]*onnx.Attribute{"to": intOf("to", to)}
	return e.reshape(e.add(n, []*Value{x, scale, zero}), shape)
}

// perElement reshapes a scale or zero point to broadcast to data of the given shape: a single number, one per
// position on the attribute "axis", or one per block of "block_size" positions there.
func (e *expansion) perElement(v *Value, shape extent.Shape) *Value {
	return e.perPosition(v, shape, e.node.Int("axis", 1), e.node.Int("block_size", 0))
}

// perPosition is perElement for a given axis and block size, 0 for none.
func (e *expansion) perPosition(v *Value, shape extent.Shape, axis, block int64) *Value {
	if v == nil {
		return v
	}
	if v.Shape.Elements().Is(1) {
		return e.reshape(v, extent.Fixed())
	}
	rank := int64(shape.Rank())
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		e.fail("axis %d is outside data of shape %v", axis, shape)
	}
	if block > 0 {
		return e.repeatBlocks(v, shape, int(axis), block)
	}
	if !v.Shape.Equal(shape.Slice(int(axis), int(axis)+1)) {
		e.fail("scale or zero point %v does not fit axis %d of %v", v.Type, axis, shape)
	}
	return e.along(v, axis, rank)
}

// along reshapes a vector to the given rank, along an axis.
func (e *expansion) along(v *Value, axis, rank int64) *Value {
	return e.reshape(v, ones(int(rank-axis)).With(0, v.Shape.Elements()))
}

// repeatBlocks repeats each position of v on an axis to match shape.
func (e *expansion) repeatBlocks(v *Value, shape extent.Shape, axis int, block int64) *Value {
	size, by := shape.At(axis), extent.Of(block)
	want := shape.With(axis, size.CeilOver(by))
	if !v.Shape.Equal(want) || !by.AtMost(size) {
		e.fail("scale or zero point %v does not fit blocks of %d on axis %d of %v", v.Type, block, axis, shape)
	}
	v = e.expand(e.reshape(v, inserted(want, axis+1, 1)), inserted(want, axis+1, block))
	return e.span(e.reshape(v, want.With(axis, want.At(axis).Times(by))), int64(axis), extent.Of(0), size)
}

// inserted returns a shape with one more axis.
func inserted(shape extent.Shape, axis int, size int64) extent.Shape {
	return extent.Concat(shape.Slice(0, axis), extent.Fixed(size), shape.Slice(axis, shape.Rank()))
}

// dynamicQuantizeLinear quantises to u8 with the scale for the data's range, extended to zero.
func (e *expansion) dynamicQuantizeLinear() []*Item {
	x := e.tensor(0)
	flat := attributes{intOf("keepdims", 0)}
	zero, steps := e.scalar(x.DType, 0), e.scalar(x.DType, 255)
	low := e.op(Min, nil, e.op(ReduceMin, flat, x), zero)
	high := e.op(Max, nil, e.op(ReduceMax, flat, x), zero)
	scale := e.op(Div, nil, e.op(Sub, nil, high, low), steps)
	// All-zero data has no range: any nonzero scale will do.
	scale = e.op(Where, nil, e.op(Equal, nil, high, low), e.scalar(x.DType, 1), scale)
	u8 := onnx.DataType(array.Uint8)
	point := e.quantize(u8, e.op(Neg, nil, low), scale, nil)
	return []*Item{tensorItem(e.quantize(u8, x, scale, point)), tensorItem(scale), tensorItem(point)}
}
