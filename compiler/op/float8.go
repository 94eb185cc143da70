package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// float8Format is a type of 8-bit floats. Their values are held as float32: only casts compute with them.
type float8Format struct {
	// bits is the number of stored bits of the significand. Normal numbers have exponents from minExponent to
	// maxExponent.
	bits, minExponent, maxExponent int
	largest                        float64
	// beyond is the magnitude of a larger number without saturation: infinity or NaN.
	beyond float64
	// unsigned is set if there is no negative zero.
	unsigned bool
}

// float8Formats holds the formats by TensorProto.DataType: E4M3FN, E4M3FNUZ, E5M2 and E5M2FNUZ.
var float8Formats = map[int64]float8Format{
	17: {3, -6, 8, 448, math.NaN(), false}, 18: {3, -7, 7, 240, math.NaN(), true},
	19: {2, -14, 15, 57344, math.Inf(1), false}, 20: {2, -15, 15, 57344, math.NaN(), true},
}

// cast converts x to a TensorProto.DataType. As 4-bit integers, floats are rounded to the nearest, and integers lose
// their higher bits.
func cast(n *Node, to int64, x expr.Expr) expr.Expr {
	if f, ok := float8Formats[to]; ok {
		if x.DType() != array.Float64 {
			x = expr.To(array.Float32, x)
		}
		return f.round(x, n.Int("saturate", 1) != 0)
	}
	d := onnx.NarrowType(to)
	if d == array.Invalid {
		return rounded(onnx.FromDataType(int32(to)), x)
	}
	low, high := fourBits(d)
	if x.DType().IsFloat() {
		return expr.To(d, clamp(expr.Un(expr.Round, wide(x)), low, high))
	}
	x = expr.Bin(expr.And, expr.To(d, x), expr.F(d, 15))
	if d == array.Uint8 {
		return x
	}
	return expr.SubE(expr.Bin(expr.Xor, x, expr.F(d, 8)), expr.F(d, 8))
}

// fourBits returns the range of the 4-bit integers held in a type.
func fourBits(d array.DType) (low, high float64) {
	if d == array.Int8 {
		return -8, 7
	}
	return 0, 15
}

// round rounds to the nearest number of the format, ties to even. A larger number becomes the largest if it saturates.
func (f float8Format) round(x expr.Expr, saturate bool) expr.Expr {
	size := expr.Un(expr.Abs, x)
	step := like(x, math.Ldexp(1, f.minExponent-f.bits))
	for e := f.minExponent + 1; e <= f.maxExponent; e++ {
		step = expr.Sel(expr.Bin(expr.Le, like(x, math.Ldexp(1, e)), size), like(x, math.Ldexp(1, e-f.bits)), step)
	}
	y := expr.MulE(expr.Un(expr.Round, expr.DivE(x, step)), step)
	if f.unsigned {
		y = expr.AddE(y, like(x, 0))
	}
	limit := f.largest
	if !saturate {
		limit = f.beyond
	}
	y = expr.Sel(expr.Bin(expr.Lt, like(x, f.largest), y), like(x, limit), y)
	return expr.Sel(expr.Bin(expr.Lt, y, like(x, -f.largest)), like(x, -limit), y)
}

// ToFloat8 reports whether a node casts to 8-bit floats. Its expression repeats the operand's a hundred times.
func (n *Node) ToFloat8() bool { return n.Op == Cast && float8Formats[n.Int("to", 0)].largest > 0 }

// NarrowOf returns onnx.Tensor.Narrow of a node's result. It returns an error if the node computes with 8-bit floats.
func NarrowOf(n *Node) (int64, error) {
	switch to := n.Int("to", 0); {
	case n.Op == Cast && onnx.NarrowType(to) != array.Invalid:
		return to, nil
	case n.Op == Cast, n.Op == "EyeLike":
		return 0, nil
	case n.Op == "Constant" && n.Attrs["value"] != nil && n.Attrs["value"].Tensor != nil:
		return n.Attrs["value"].Tensor.Narrow, nil
	}
	found := int64(0)
	for _, v := range n.In {
		if v.Narrow != 0 {
			found = v.Narrow
		}
	}
	moves := slices.Contains([]Kind{Injective, Reshaping, Permute}, n.def.Kind) || n.Op == Copy || n.Op == Where
	switch _, isFloat := float8Formats[found]; {
	case found == 0, moves:
		return found, nil
	case n.def.Kind == Known, !isFloat:
		return 0, nil
	}
	return 0, fmt.Errorf("computing with 8-bit floats is not supported: cast to float32 before")
}
