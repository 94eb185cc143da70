package op

import "slices"

// convProduct describes a Conv: the weights are [output channels, input channels of a group, window].
func convProduct(n *Node) Product {
	whole := n.Int("group", 1) == 1
	return Product{Axis: 1, WeightAxis: 0, Mergeable: whole, Scalable: true, Pointwise: whole && areOnes(n.In[1].Shape.Max()[2:])}
}

// convTransposeProduct describes a ConvTranspose: the weights are [input channels, output channels of a group,
// window].
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
		p.Mergeable = bias.Rank() < 2 || bias.Rank() == 2 && bias.At(0).Is(1)
		p.Scalable = plain && bias.Rank() == 1
	}
	return p
}

// matmulProduct describes a MatMul, which has no bias operand.
func matmulProduct(n *Node) Product {
	return Product{
		Axis: n.Out.Shape.Rank() - 1, WeightAxis: 1, Pointwise: known(n.In[1:]),
		Mergeable: n.In[1].Shape.Rank() == 2 && n.In[0].Shape.Rank() >= 2,
	}
}

func areOnes(v []int64) bool { return !slices.ContainsFunc(v, func(x int64) bool { return x != 1 }) }

// known reports whether all given operands are constants.
func known(operands []Value) bool {
	return !slices.ContainsFunc(operands, func(v Value) bool { return v.Present() && v.Const == nil })
}
