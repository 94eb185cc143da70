package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// convProduct: the weights are [channels out, channels in of a group, window].
func convProduct(n *Node) Product {
	whole := n.Int("group", 1) == 1
	return Product{Axis: 1, WeightAxis: 0, Mergeable: whole, Scalable: true, Pointwise: whole && areOnes(n.In[1].Shape[2:])}
}

// convTransposeProduct: the weights are [channels in, channels out of a group, window].
func convTransposeProduct(n *Node) Product {
	return Product{Axis: 1, WeightAxis: 1, Scalable: n.Int("group", 1) == 1}
}

func gemmProduct(n *Node) Product {
	plain := n.Float("alpha", 1) == 1 && n.Float("beta", 1) == 1
	p := Product{Axis: 1, WeightAxis: 1, Mergeable: true, Scalable: plain, Pointwise: known(n.In[1:])}
	if n.Int("transB", 0) != 0 {
		p.WeightAxis = 0
	}
	if n.Has(2) {
		bias := n.In[2].Shape
		p.Mergeable = len(bias) < 2 || len(bias) == 2 && bias[0] == 1
		p.Scalable = plain && len(bias) == 1
	}
	return p
}

// matmulProduct: there is no operand that a term for each channel could go into.
func matmulProduct(n *Node) Product {
	return Product{
		Axis: len(n.Out.Shape) - 1, WeightAxis: 1, Pointwise: known(n.In[1:]),
		Mergeable: len(n.In[1].Shape) == 2 && len(n.In[0].Shape) >= 2,
	}
}

// convIntegers sums the channels, which lie side by side, over the window.
func convIntegers(n *Node, weights []int64) (IntegerProduct, bool) {
	ok := len(weights) >= 3 && n.Int("group", 1) == 1 && !fewerMultiplications(n, weights)
	if !ok {
		return IntegerProduct{}, false
	}
	return IntegerProduct{WeightAxis: 0, Neighbours: weights[1], Terms: array.Elements(weights[1:])}, true
}

// fewerMultiplications reports whether a convolution is one that Winograd's algorithm computes, which in floats is
// faster than all products in integers.
func fewerMultiplications(n *Node, weights []int64) bool {
	return slices.Equal(weights[2:], []int64{3, 3}) && areOnes(n.Ints("strides", nil)) && areOnes(n.Ints("dilations", nil))
}

func gemmIntegers(n *Node, weights []int64) (IntegerProduct, bool) {
	if len(weights) != 2 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1 || n.Int("transA", 0) != 0 {
		return IntegerProduct{}, false
	}
	axis := int64(1)
	if n.Int("transB", 0) != 0 {
		axis = 0
	}
	return IntegerProduct{axis, weights[1-axis], weights[1-axis]}, true
}

func matmulIntegers(_ *Node, weights []int64) (IntegerProduct, bool) {
	if len(weights) != 2 {
		return IntegerProduct{}, false
	}
	return IntegerProduct{1, weights[0], weights[0]}, true
}

func areOnes(v []int64) bool { return !slices.ContainsFunc(v, func(x int64) bool { return x != 1 }) }

// known reports whether all operands that were given are constants.
func known(operands []Value) bool {
	return !slices.ContainsFunc(operands, func(v Value) bool { return v.Present() && v.Const == nil })
}
