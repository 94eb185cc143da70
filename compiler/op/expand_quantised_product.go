package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// quantisedProducts turn products of dequantised values into products of the integers, scaled afterwards: the sum
// is exact and rounded once, whereas a float sum is rounded at each term.
var quantisedProducts = []Form{
	quantisedProduct(Conv, convSums, (*expansion).quantisedConv).or(blockForm(Conv)),
	quantisedProduct(MatMul, matmulSums, (*expansion).quantisedMatMul).or(blockForm(MatMul)),
	quantisedProduct(Gemm, gemmSums, (*expansion).quantisedGemm).or(blockForm(Gemm)),
}

// or returns the form where it applies, and another one elsewhere.
func (f Form) or(other Form) Form {
	first := f
	f.Applies = func(n *Node, in []*Item) bool { return first.Applies(n, in) || other.Applies(n, in) }
	f.Expand = func(b Builder, n *Node, in []*Item, used []bool) ([]*Item, error) {
		if first.Applies(n, in) {
			return first.Expand(b, n, in, used)
		}
		return other.Expand(b, n, in, used)
	}
	return f
}

// sums describes the integer sums of a product.
type sums struct {
	// axis is the result axis of the weights.
	axis int64
	// terms is the number of terms of a sum; pays is set if integers are worth it.
	terms int64
	pays  bool
}

const (
	// dotTerms is the largest number of neighbouring terms that instructions multiply at once; without such
	// instructions floats are as fast.
	dotTerms = 4
	// maxIntegerTerms is the number of products of 9-bit factors whose sum fits into 32 bits.
	maxIntegerTerms = 1 << 31 / (255 * 255)
)

// quantisedProduct is the form of nodes with dequantised operands for which integer products pay.
func quantisedProduct(name string, of func(n *Node, weights []int64) (sums, bool), f func(e *expansion) []*Item) Form {
	return Form{Name: name, Expand: expand(f), Applies: func(n *Node, in []*Item) bool {
		if len(in) < 2 || in[0] == nil || in[1] == nil || in[0].Tensor == nil || in[1].Tensor == nil {
			return false
		}
		data, weights := in[0].Tensor.From, in[1].Tensor.From
		if data == nil || weights == nil || in[0].Tensor.DType != array.Float32 || !isKnown(weights.Integer) ||
			!data.Scale.Shape.Elements().Is(1) || !areBytes(data) || !areBytes(weights) {
			return false
		}
		s, ok := of(n, weights.Integer.Const.Shape)
		if !ok || !weights.Scale.Shape.Elements().Is(1) && (weights.Axis != s.axis || weights.Block != 0) {
			return false
		}
		return s.pays && s.terms < maxIntegerTerms
	}}
}

// areBytes reports whether a value was dequantised from 8-bit integers with a known scale and zero point.
func areBytes(q *Dequantised) bool {
	return q.Integer.DType.Bytes() == 1 && isKnown(q.Scale) && isKnown(q.Zero)
}

// convSums describes sums over the channels, which are contiguous, and the window. It adds channels if few are
// missing. A depthwise convolution has one term per window element, and gains by reading a quarter of the bytes.
func convSums(n *Node, weights []int64) (sums, bool) {
	if len(weights) < 3 {
		return sums{}, false
	}
	groups := n.Int("group", 1)
	pays := groups == 1 && missingChannels(weights[1]) <= weights[1] || groups > 1 && weights[1] == 1 && weights[0] == groups
	return sums{axis: 0, terms: array.Elements(weights[1:]), pays: pays}, true
}

func gemmSums(n *Node, weights []int64) (sums, bool) {
	if len(weights) != 2 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1 || n.Int("transA", 0) != 0 {
		return sums{}, false
	}
	if n.Int("transB", 0) != 0 {
		return sums{0, weights[1], weights[1]%dotTerms == 0}, true
	}
	return sums{1, weights[0], weights[0]%dotTerms == 0}, true
}

func matmulSums(_ *Node, weights []int64) (sums, bool) {
	if len(weights) != 2 {
		return sums{}, false
	}
	return sums{1, weights[0], weights[0]%dotTerms == 0}, true
}

// operands returns the two dequantised values, and the factor of a product's sums.
func (e *expansion) operands() (data, weights Dequantised, factor *Value) {
	data, weights = *e.tensor(0).From, *e.tensor(1).From
	data.Scale, data.Zero = e.oneForAll(data.Scale), e.oneForAll(data.Zero)
	weights.Scale, weights.Zero = e.oneOrColumns(weights.Scale), e.oneOrColumns(weights.Zero)
	return data, weights, e.op(Mul, nil, e.toFloat32(data.Scale), e.toFloat32(weights.Scale))
}

// scaled converts sums to floats and adds the bias.
func (e *expansion) scaled(sums, factor, bias *Value) []*Item {
	result := e.op(Mul, nil, e.toFloat32(sums), factor)
	if bias != nil {
		result = e.op(Add, nil, result, bias)
	}
	return only(result)
}

func (e *expansion) quantisedConv() []*Item {
	data, weights, factor := e.operands()
	sums := e.integerConv(data.Integer, data.Zero, weights.Integer, weights.Zero)
	rank, bias := int64(sums.Shape.Rank()), e.tensor(2)
	if factor.Shape.Rank() == 1 {
		factor = e.along(factor, 1, rank)
	}
	if bias != nil {
		bias = e.along(bias, 1, rank)
	}
	return e.scaled(sums, factor, bias)
}

func (e *expansion) quantisedMatMul() []*Item {
	data, weights, factor := e.operands()
	return e.scaled(e.integerMatMul(data.Integer, data.Zero, weights.Integer, weights.Zero), factor, nil)
}

func (e *expansion) quantisedGemm() []*Item {
	data, weights, factor := e.operands()
	if e.node.Int("transB", 0) != 0 {
		weights.Integer = e.op(Transpose, attributes{{Name: "perm", Type: onnx.AttrInts, Ints: []int64{1, 0}}}, weights.Integer)
	}
	return e.scaled(e.integerMatMul(data.Integer, data.Zero, weights.Integer, weights.Zero), factor, e.tensor(2))
}
