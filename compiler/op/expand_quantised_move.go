package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// quantisedMoves are operators that move elements, or select the largest. For dequantised values they operate on
// the integers, a quarter of the bytes, and the result is dequantised, so that its readers may use the integers,
// too. A scale is positive, so the order of integers is that of the values.
var quantisedMoves = []Form{
	quantisedMove("MaxPool"), quantisedMove("GlobalMaxPool"), quantisedMove(Concat), quantisedMove(Reshape), quantisedMove("Flatten"),
	quantisedMove(Squeeze), quantisedMove("Unsqueeze"), quantisedMove(Transpose).or(transposedWeights), quantisedMove(Slice),
}

func quantisedMove(name string) Form {
	return Form{Name: name, Applies: movesIntegers, Expand: expand((*expansion).quantisedMove)}
}

// movesIntegers reports whether a node has one result, and all its data was dequantised from bytes with one scale
// and zero point.
func movesIntegers(n *Node, in []*Item) bool {
	data := movedData(n.Op, in)
	if n.Outputs > 1 || len(data) == 0 {
		return false
	}
	return !slices.ContainsFunc(data, func(x *Item) bool {
		if x == nil || x.Tensor == nil || x.Tensor.From == nil || x.Tensor.Const != nil || isLeft(x.Tensor) || x.Tensor.DType != array.Float32 {
			return true
		}
		from := x.Tensor.From
		return !areBytes(from) || !isScale(from.Scale) || !sameQuantisation(from, data[0].Tensor.From)
	})
}

// movedData returns the inputs whose elements a node moves: all of a concatenation, or else the first.
func movedData(name string, in []*Item) []*Item {
	if name == Concat {
		return in
	}
	return in[:min(1, len(in))]
}

// isScale reports whether a scale is a single number in a range in which products do not overflow.
func isScale(v *Value) bool {
	const smallest, largest = 1e-30, 1e30
	return v.Const != nil && v.Const.Len() == 1 && v.Const.Float(0) > smallest && v.Const.Float(0) < largest
}

// sameQuantisation reports whether two values with single scales are quantised alike.
func sameQuantisation(a, b *Dequantised) bool {
	return a.Integer.DType == b.Integer.DType && a.Scale.DType == b.Scale.DType && isScale(a.Scale) && isScale(b.Scale) &&
		a.Scale.Const.Float(0) == b.Scale.Const.Float(0) && sameZero(a.Zero, b.Zero)
}

func sameZero(a, b *Value) bool {
	if isZero(a) || isZero(b) {
		return isZero(a) && isZero(b)
	}
	return a.Const != nil && b.Const != nil && a.Const.Len() == 1 && b.Const.Len() == 1 && a.Const.Int(0) == b.Const.Int(0)
}

func (e *expansion) quantisedMove() []*Item {
	in := e.tensors()
	from := *in[0].From
	for k := range movedData(e.node.Op, e.in) {
		in[k] = in[k].From.Integer
	}
	from.Integer = e.itself(in...)
	result := e.op(Dequantize, attributes{intOf("to", int64(onnx.DataType(array.Float32)))}, from.Integer, e.oneForAll(from.Scale), e.oneForAll(from.Zero))
	if result != nil {
		result.From = &from
	}
	return only(result)
}

// oneForAll returns a scale or zero point without axes.
func (e *expansion) oneForAll(v *Value) *Value {
	if v == nil {
		return nil
	}
	return e.reshape(v, extent.Fixed())
}
