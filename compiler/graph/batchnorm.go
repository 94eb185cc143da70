package graph

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
)

// foldBatchNorms turns each batch normalisation with known statistics into one multiplication and addition per
// channel, and folds those into the weights of a convolution or dense layer that nothing else reads.
func foldBatchNorms(g *graph) error {
	users := g.users()
	for k := 0; k < len(g.nodes); k++ {
		n := g.nodes[k]
		if !n.is(op.BatchNormalization) || !allKnown(n.in[1:]) {
			continue
		}
		g.budget.For(n.Name, n.Op)
		g.budget.Bytes(32 * int64(len(n.In[1].Const.Data))) // factors and terms, as float64 and as constants
		scale, shift := scaleAndShift(n)
		if p := n.in[0].producer; p != nil && len(users[n.in[0]]) == 1 && !g.isOutput(n.in[0]) && foldable(p) {
			folded, err := scaleWeights(g, n, p, scale, shift)
			if err != nil {
				return err
			}
			users[folded.out] = users[n.out]
			k--
			continue
		}
		nodes, err := scaleNodes(g, n, scale, shift)
		if err != nil {
			return err
		}
		g.nodes = slices.Replace(g.nodes, k, k+1, nodes...)
		users[nodes[1].out] = users[n.out]
	}
	return nil
}

// scaleAndShift are the factor and the term of each channel.
func scaleAndShift(n *node) (scale, shift []float64) {
	gamma, beta, mean, variance := n.In[1].Const, n.In[2].Const, n.In[3].Const, n.In[4].Const
	epsilon := n.Float("epsilon", 1e-5)
	for c := range gamma.Len() {
		s := gamma.Float(c) / math.Sqrt(variance.Float(c)+epsilon)
		scale = append(scale, s)
		shift = append(shift, beta.Float(c)-mean.Float(c)*s)
	}
	return scale, shift
}

// foldable reports whether a node has known weights whose outputs can be scaled.
func foldable(n *node) bool {
	p, ok := n.Product()
	return ok && p.Scalable && allKnown(n.in[1:])
}

// scaleWeights replaces p and the normalisation n that follows it by p with other weights and bias, which it returns.
func scaleWeights(g *graph, n, p *node, scale, shift []float64) (*node, error) {
	g.budget.Bytes(int64(len(p.in[1].Const.Data)))
	product, _ := p.Product()
	weights := scaleChannels(p.in[1].Const, product.WeightAxis, scale)
	bias := array.New(weights.DType, int64(len(shift)))
	for c, s := range shift {
		if len(p.in) > 2 && p.in[2] != nil {
			b := p.in[2].Const
			s += scale[c] * b.Float(min(int64(c), b.Len()-1)) // a Gemm's bias may have one element
		}
		bias.SetFloat(int64(c), s)
	}
	folded, err := g.apply(op.Node{Name: p.Name, Op: p.Op, Opset: p.Opset, Attrs: p.Attrs}, n.out.name,
		p.in[0], g.constant(p.in[1].name, weights), g.constant(p.Name+".bias", bias))
	if err != nil {
		return nil, err
	}
	g.replace(n.out, folded.out)
	g.nodes[slices.Index(g.nodes, p)] = folded
	g.nodes = slices.DeleteFunc(g.nodes, func(x *node) bool { return x == n })
	return folded, nil
}

// scaleChannels multiplies the slices of an array along an axis.
func scaleChannels(a *array.Array, axis int, scale []float64) *array.Array {
	out := array.New(a.DType, a.Shape...)
	inner := array.Elements(a.Shape[axis+1:])
	for i := range a.Len() {
		out.SetFloat(i, a.Float(i)*scale[i/inner%a.Shape[axis]])
	}
	return out
}

// scaleNodes are a multiplication and an addition that do what n does.
func scaleNodes(g *graph, n *node, scale, shift []float64) ([]*node, error) {
	shape := []int64{int64(len(scale))}
	for range n.Out.Shape[2:] {
		shape = append(shape, 1)
	}
	known := func(name string, v []float64) *value {
		a := array.New(n.Out.DType, shape...)
		for c, x := range v {
			a.SetFloat(int64(c), x)
		}
		return g.constant(n.Name+name, a)
	}
	mul, err := g.apply(op.Node{Name: n.Name, Op: op.Mul, Opset: n.Opset}, n.out.name+".scaled", n.in[0], known(".scale", scale))
	if err != nil {
		return nil, err
	}
	add, err := g.apply(op.Node{Name: n.Name, Op: op.Add, Opset: n.Opset}, n.out.name, mul.out, known(".shift", shift))
	if err != nil {
		return nil, err
	}
	g.replace(n.out, add.out)
	return []*node{mul, add}, nil
}
