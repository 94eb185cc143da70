package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// Internal operators, into which quantised operators expand. Scales and zero points broadcast to the data as in numpy.
const (
	// Quantize is x/scale, clipped to the attributes "low" and "high" (optional), rounded to even, plus the zero
	// point (optional), clamped to the integer type whose TensorProto.DataType is the attribute "to". With the
	// attribute "round_last" the zero point is added before rounding: an odd one resolves ties the other way.
	Quantize = "quantize"
	// Dequantize is x minus the zero point (optional), times the scale, in the type of the attribute "to".
	Dequantize = "dequantize"
	// IntegerMatMul is a matrix product of integers of up to 32 bits, possibly of different types, summed in i32.
	IntegerMatMul = "integer_matmul"
	// IntegerConv is a convolution of integers of up to 32 bits, summed in i32. Operand 2, a scalar of the input's
	// type, is the value of padding; zero if omitted.
	IntegerConv = "integer_conv"
)

var quantizeDefs = []Def{
	scalarDef(Quantize, 2, 3, quantizeType, quantize).internal(),
	scalarDef(Dequantize, 2, 3, dequantizeType, dequantize).internal(),
	{
		Name: IntegerMatMul, Internal: true, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "matmul", Lower: lowerMatMul,
		Infer:  func(n *Node) (Type, error) { return inferProduct(n, integers) },
		Layout: rowMajorResult, Work: matmulWork, Detail: matmulDetail,
	},
	{
		Name: IntegerConv, Internal: true, Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "conv", Lower: lowerIntegerConv,
		Infer:  inferIntegerConv,
		Layout: channelsLastResult, Work: convWork, Detail: convDetail,
	},
}

// integers requires integers of up to 32 bits; the result is i32.
func integers(n *Node) (array.DType, error) {
	for k, v := range n.In {
		if v.Present() && !(v.DType.IsInt() && v.DType.Bytes() <= 4) {
			return 0, fmt.Errorf("input %d is %v and not an integer of up to 32 bits", k, v.DType)
		}
	}
	return array.Int32, nil
}

// typeAttribute returns the element type in the attribute "to".
func (n *Node) typeAttribute() array.DType { return onnx.FromDataType(int32(n.Int("to", 0))) }

func quantizeType(n *Node) (array.DType, error) {
	d := n.typeAttribute()
	if !d.IsInt() || d.Bytes() > 2 {
		return 0, fmt.Errorf("quantising to element type %d is not supported: use 8 or 16 bit integers", n.Int("to", 0))
	}
	if !n.In[1].DType.IsFloat() || n.Has(2) && n.In[2].DType != d {
		return 0, fmt.Errorf("scale %v and zero point do not fit %v", n.In[1].Type, d)
	}
	return d, nil
}

// quantize computes in the type of the scale, in which the integers are exact. It multiplies by the reciprocal of a
// known scale, which takes a tenth of the time of a division. Values within a rounding error of the midpoint
// between two integers may round the other way.
func quantize(n *Node, x []expr.Expr) expr.Expr {
	e := expr.To(x[1].DType(), x[0])
	switch inverse, ok := reciprocal(x[1]); {
	case !ok:
		e = expr.DivE(e, x[1])
	case inverse != 1:
		e = expr.MulE(e, expr.F(array.Float32, inverse))
	}
	to := n.typeAttribute()
	zero, ok := zeroPoint(x)
	last := n.Int("round_last", 0) != 0
	if !ok || e.DType() != array.Float32 {
		if e = n.bounded(e); !last {
			e = expr.Un(expr.Round, e)
		}
		if len(x) > 2 && x[2] != nil {
			e = expr.AddE(e, expr.To(e.DType(), x[2]))
		}
		if last {
			e = expr.Un(expr.Round, e)
		}
		return expr.MinE(expr.MaxE(e, limit(e, expr.Lowest(to))), limit(e, expr.Highest(to)))
	}
	// Integral bounds are the same before and after rounding.
	low, high := limit(e, expr.Lowest(to)).(*expr.Float).Value-zero, limit(e, expr.Highest(to)).(*expr.Float).Value-zero
	low, high = max(low, min(n.Float("low", low), high)), min(high, max(n.Float("high", high), low))
	e = expr.MinE(expr.MaxE(e, like(e, low)), like(e, high))
	if last && zero != 0 {
		e, zero = expr.AddE(e, like(e, zero)), 0
	}
	e = expr.To(array.Int32, expr.Un(expr.Round, e))
	if zero != 0 {
		e = expr.AddE(e, expr.F(array.Int32, zero))
	}
	return e
}

// bounded clips a value to the attributes "low" and "high", if present.
func (n *Node) bounded(e expr.Expr) expr.Expr {
	if n.Attrs["low"] != nil {
		e = expr.MaxE(e, like(e, n.Float("low", 0)))
	}
	if n.Attrs["high"] != nil {
		e = expr.MinE(e, like(e, n.Float("high", 0)))
	}
	return e
}

// zeroPoint returns the zero point of a quantisation, zero if absent; ok is false if it is not known.
func zeroPoint(x []expr.Expr) (zero float64, ok bool) {
	if len(x) < 3 || x[2] == nil {
		return 0, true
	}
	z, ok := x[2].(*expr.Int)
	if !ok {
		return 0, false
	}
	return float64(z.Value), true
}

// reciprocal returns the reciprocal of a known float32 in the range of full precision; ok is false for others.
func reciprocal(e expr.Expr) (inverse float64, ok bool) {
	const smallest, largest = 0x1p-100, 0x1p100
	f, ok := e.(*expr.Float)
	if !ok || f.DType() != array.Float32 || math.Abs(f.Value) < smallest || math.Abs(f.Value) > largest {
		return 0, false
	}
	return float64(float32(1 / f.Value)), true
}

func limit(e, bound expr.Expr) expr.Expr {
	i, ok := bound.(*expr.Int)
	if !ok {
		return e
	}
	return like(e, float64(i.Value))
}

func dequantizeType(n *Node) (array.DType, error) {
	to := n.typeAttribute()
	if !to.IsFloat() || !n.In[1].DType.IsFloat() {
		return 0, fmt.Errorf("scale %v and result %v are not floating point", n.In[1].Type, to)
	}
	if d := n.In[0].DType; !d.IsInt() || d.Bytes() > 4 || n.Has(2) && n.In[2].DType != d {
		return 0, fmt.Errorf("input %v and its zero point do not fit", n.In[0].Type)
	}
	return to, nil
}

func dequantize(n *Node, x []expr.Expr) expr.Expr {
	e := expr.To(array.Int32, x[0])
	if len(x) > 2 && x[2] != nil {
		e = expr.SubE(e, expr.To(array.Int32, x[2]))
	}
	to := wideType(n.typeAttribute())
	if !to.IsFloat() {
		to = x[1].DType() // the type rule rejects it
	}
	return expr.MulE(expr.To(to, e), expr.To(to, x[1]))
}

func inferIntegerConv(n *Node) (Type, error) {
	if n.Has(2) && (n.In[2].DType != n.In[0].DType || !n.In[2].Shape.Elements().Is(1)) {
		return Type{}, fmt.Errorf("the value of padding %v is not a scalar %v", n.In[2].Type, n.In[0].DType)
	}
	d := Get(integers(n))
	return inferWindows(n, d)
}

func lowerIntegerConv(l *Lowering, n *Node, in []Operand) Operand {
	fill := expr.Zero(in[0].DType)
	if n.Has(2) {
		value := l.Readable(in[2])
		fill = value.At(zeros(value.Shape.Rank())...)
	}
	return lowerConvSum(l, n, in[0], in[1], fill)
}
