package graph

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// dequantised is what a DequantizeLinear made a value of: integer minus zero, times scale. scale and zero are as in
// the model: one for all, or one for each position on the axis; zero may be nil.
type dequantised struct {
	integer, scale, zero *value
	axis                 int64
}

// quantisedProducts write products of dequantised values as products of the integers, scaled afterwards: the sum is
// exact, and rounded once to a float, where that of the floats is rounded at each term.
func quantisedProducts() map[string]expander {
	return map[string]expander{
		op.Conv:   {2, 3, (*expansion).quantisedConv},
		op.MatMul: {2, 2, (*expansion).quantisedMatMul},
		op.Gemm:   {2, 3, (*expansion).quantisedGemm},
	}
}

// quantisedProduct is the expander of a node whose operands are dequantised values that products of integers pay for;
// ok is false for others.
func (b *builder) quantisedProduct(n op.Node, in []*item) (x expander, ok bool) {
	x, ok = quantisedProducts()[n.Op]
	if !ok || len(in) < 2 || in[0] == nil || in[1] == nil {
		return expander{}, false
	}
	data, okData := b.dequantised[in[0].tensor]
	weights, okWeights := b.dequantised[in[1].tensor]
	if !okData || !okWeights || !isKnown(weights.integer) || array.Elements(data.scale.Shape) != 1 || in[0].tensor.DType != array.Float32 {
		return expander{}, false
	}
	for _, q := range []dequantised{data, weights} {
		if q.integer.DType.Bytes() != 1 || !isKnown(q.scale) || !isKnown(q.zero) {
			return expander{}, false
		}
	}
	integers := op.Find(n.Op).IntegerProduct
	p, ok := integers(&n, weights.integer.Shape)
	if !ok || array.Elements(weights.scale.Shape) != 1 && weights.axis != p.WeightAxis {
		return expander{}, false
	}
	return x, p.Neighbours%dotTerms == 0 && p.Terms < maxIntegerTerms
}

const (
	// dotTerms is how many neighbouring terms instructions multiply at once, at most; without them floats are as fast.
	dotTerms = 4
	// maxIntegerTerms bounds the products of 9 bits each that 32 bits hold the sum of.
	maxIntegerTerms = 1 << 31 / (255 * 255)
)

// operands are the two dequantised values, and the factor of a product's sums.
func (e *expansion) operands() (data, weights dequantised, factor *value) {
	data, weights = e.dequantised[e.tensor(0)], e.dequantised[e.tensor(1)]
	data.scale = e.reshape(data.scale)
	if data.zero != nil {
		data.zero = e.reshape(data.zero)
	}
	if array.Elements(weights.scale.Shape) == 1 {
		weights.scale = e.reshape(weights.scale)
	}
	if weights.zero != nil && array.Elements(weights.zero.Shape) == 1 {
		weights.zero = e.reshape(weights.zero)
	}
	return data, weights, e.op(op.Mul, nil, e.toFloat32(data.scale), e.toFloat32(weights.scale))
}

// scaled are sums in floats, with what is added to them.
func (e *expansion) scaled(sums, factor, bias *value) []*item {
	if e.failed() {
		return nil
	}
	result := e.op(op.Mul, nil, e.toFloat32(sums), factor)
	if bias != nil {
		result = e.op(op.Add, nil, result, bias)
	}
	return only(result)
}

func (e *expansion) quantisedConv() []*item {
	data, weights, factor := e.operands()
	sums := e.integerConv(data.integer, data.zero, weights.integer, weights.zero)
	if e.failed() {
		return nil
	}
	rank, bias := int64(len(sums.Shape)), e.tensor(2)
	if len(factor.Shape) == 1 {
		factor = e.along(factor, 1, rank)
	}
	if bias != nil {
		bias = e.along(bias, 1, rank)
	}
	return e.scaled(sums, factor, bias)
}

func (e *expansion) quantisedMatMul() []*item {
	data, weights, factor := e.operands()
	return e.scaled(e.integerMatMul(data.integer, data.zero, weights.integer, weights.zero), factor, nil)
}

func (e *expansion) quantisedGemm() []*item {
	data, weights, factor := e.operands()
	if e.failed() {
		return nil
	}
	if e.node.Int("transB", 0) != 0 {
		if weights.zero != nil && len(weights.zero.Shape) == 1 {
			weights.zero = e.reshape(weights.zero, array.Elements(weights.zero.Shape), 1)
		}
		weights.integer = e.op(op.Transpose, attributes{{Name: "perm", Type: onnx.AttrInts, Ints: []int64{1, 0}}}, e.centred(weights.integer, weights.zero))
		weights.zero = nil
	}
	return e.scaled(e.integerMatMul(data.integer, data.zero, weights.integer, weights.zero), factor, e.tensor(2))
}
