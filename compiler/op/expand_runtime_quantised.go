package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// runtimeQuantisedDefs are ONNX Runtime's operators on integers. Its quantiser writes them where ONNX lacks the
// operator or the type. They expand to operators on floats between dequantisations and a quantisation, which later
// passes fold, or to integer products.
var runtimeQuantisedDefs = []Def{
	ofRuntime(def("QuantizeLinear", 2, 3, (*expansion).quantizeLinear)),
	ofRuntime(def("DequantizeLinear", 2, 3, (*expansion).dequantizeLinear)),
	ofRuntime(def("QLinearAdd", 7, 8, roundedLast(Add, 2))),
	ofRuntime(def("QLinearMul", 7, 8, roundedLast(Mul, 2))),
	ofRuntime(def("QLinearSigmoid", 4, 5, between("Sigmoid", 1))),
	ofRuntime(def("QLinearLeakyRelu", 4, 5, between("LeakyRelu", 1))),
	ofRuntime(def("QLinearAveragePool", 4, 5, (*expansion).qLinearAveragePool)),
	ofRuntime(def("QLinearGlobalAveragePool", 5, 5, (*expansion).qLinearGlobalAveragePool)),
	ofRuntime(def("QLinearSoftmax", 5, 5, between(Softmax, 1))),
	ofRuntime(def("QLinearWhere", 9, 9, (*expansion).qLinearWhere)),
	ofRuntime(def("QLinearConcat", 5, -1, (*expansion).qLinearConcat)),
	ofRuntime(def("QGemm", 6, 9, (*expansion).qGemm)),
	ofRuntime(def("MatMulIntegerToFloat", 4, 7, (*expansion).matMulIntegerToFloat)),
	ofRuntime(def("DynamicQuantizeMatMul", 3, 5, (*expansion).dynamicQuantizeMatMul)),
}

// between returns the expansion of an operator on quantised operands, each followed by its scale and zero point,
// with those of the result last.
func between(name string, operands int) func(*expansion) []*Item {
	return func(e *expansion) []*Item { return only(e.quantised(e.onDequantised(name, operands), 3*operands)) }
}

// roundedLast is like between, for operators that ONNX Runtime rounds with the zero point included.
func roundedLast(name string, operands int) func(*expansion) []*Item {
	return func(e *expansion) []*Item {
		return only(e.quantisedRoundedLast(e.onDequantised(name, operands), 3*operands))
	}
}

// onDequantised applies an operator to the given number of quantised operands.
func (e *expansion) onDequantised(name string, operands int) *Value {
	in := make([]*Value, operands)
	for k := range in {
		in[k] = e.dequantised(3 * k)
	}
	return e.onFloats(name, in...)
}

// dequantised returns input k, dequantised by the scale and the zero point that follow it.
func (e *expansion) dequantised(k int) *Value {
	if x := e.as((*expansion).dequantizeLinear, nil, e.tensor(k), e.tensor(k+1), e.tensor(k+2))[0]; x != nil {
		return x.Tensor
	}
	return nil
}

// quantised quantises a value by the scale in input k and the zero point that follows, in the type of input 0 if
// there is no zero point.
func (e *expansion) quantised(x *Value, k int) *Value {
	attrs := attributes{intOf("output_dtype", e.resultType(k+1))}
	if q := e.as((*expansion).quantizeLinear, attrs, x, e.tensor(k), e.tensor(k+1))[0]; q != nil {
		return q.Tensor
	}
	return nil
}

// quantisedRoundedLast does so with the zero point added before rounding.
func (e *expansion) quantisedRoundedLast(x *Value, k int) *Value {
	attrs := attributes{intOf("to", e.resultType(k+1)), intOf("round_last", 1)}
	return e.op(Quantize, attrs, x, e.perElement(e.tensor(k), x.Shape), e.perElement(e.tensor(k+1), x.Shape))
}

// resultType returns TensorProto's number for the type of the zero point in input k, or of input 0.
func (e *expansion) resultType(k int) int64 {
	if zero := e.tensor(k); zero != nil {
		return int64(onnx.DataType(zero.DType))
	}
	return int64(onnx.DataType(e.tensor(0).DType))
}

// onFloats applies an ONNX operator with the node's attributes; a softmax selects the operator set.
func (e *expansion) onFloats(name string, in ...*Value) *Value {
	return e.add(Node{Name: e.node.Name, Op: name, Opset: e.node.Int("opset", expandedOpset), Attrs: e.node.Attrs, Outputs: 1}, in)
}

// qLinearWhere selects between two quantised values by input 0.
func (e *expansion) qLinearWhere() []*Item {
	x, y := e.dequantised(1), e.dequantised(4)
	return only(e.quantised(e.onFloats(Where, e.tensor(0), x, y), 7))
}

// qLinearConcat has the scale and the zero point of the result first. Parts quantised alike stay unchanged.
func (e *expansion) qLinearConcat() []*Item {
	if len(e.in)%3 != 2 {
		e.fail("%d inputs are not a scale, a zero point and three of each part", len(e.in))
	}
	var parts []*Value
	for k := 2; k < len(e.in); k += 3 {
		parts = append(parts, e.quantised(e.dequantised(k), 0))
	}
	return only(e.onFloats(Concat, parts...))
}

// qGemm adds input 6, whose scale is that of the product, and quantises if the result has a scale.
func (e *expansion) qGemm() []*Item {
	a, aZero, b, bZero := e.tensor(0), e.tensor(2), e.tensor(3), e.tensor(5)
	if bZero != nil && bZero.Shape.Rank() == 1 && e.node.Int("transB", 0) != 0 {
		bZero = e.reshape(bZero, extent.ShapeOf(bZero.Shape.At(0), extent.Of(1)))
	}
	a = e.transposedIf(a, "transA")
	if isKnown(b) && isKnown(bZero) {
		b, bZero = e.centred(b, bZero), nil
	} else {
		bZero = e.oneOrColumns(bZero)
	}
	b = e.transposedIf(b, "transB")
	sums := e.integerMatMul(a, aZero, b, bZero)
	if c := e.tensor(6); c != nil {
		sums = e.op(Add, nil, sums, c)
	}
	factor := e.op(Mul, nil, e.tensor(1), e.tensor(4))
	if alpha := e.node.Float("alpha", 1); alpha != 1 {
		factor = e.op(Mul, nil, factor, e.scalar(array.Float32, alpha))
	}
	if e.tensor(7) == nil {
		return e.scaled(sums, factor, nil)
	}
	scaled := e.op(Mul, nil, e.toFloat32(sums), factor)
	return only(e.quantised(scaled, 7))
}

// transposedIf returns a matrix, transposed if an attribute is set.
func (e *expansion) transposedIf(v *Value, attribute string) *Value {
	if e.node.Int(attribute, 0) == 0 {
		return v
	}
	return e.op(Transpose, attributes{intsOf("perm", 1, 0)}, v)
}

// matMulIntegerToFloat scales an integer product, and adds input 6.
func (e *expansion) matMulIntegerToFloat() []*Item {
	sums := e.integerMatMul(e.tensor(0), e.tensor(4), e.tensor(1), e.tensor(5))
	return e.scaled(sums, e.op(Mul, nil, e.perRow(e.tensor(2)), e.tensor(3)), e.tensor(6))
}

// dynamicQuantizeMatMul quantises input 0 by its range, multiplies it by integers, and adds input 4.
func (e *expansion) dynamicQuantizeMatMul() []*Item {
	a := e.as((*expansion).dynamicQuantizeLinear, nil, e.tensor(0))
	sums := e.integerMatMul(a[0].Tensor, a[2].Tensor, e.tensor(1), e.tensor(3))
	return e.scaled(sums, e.op(Mul, nil, a[1].Tensor, e.tensor(2)), e.tensor(4))
}
