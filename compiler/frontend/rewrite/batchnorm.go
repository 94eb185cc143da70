package rewrite

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// foldBatchNorms turns each batch normalisation with known statistics into one multiplication and addition per
// channel, and folds those into the weights of a convolution or dense layer without other readers.
func foldBatchNorms(g *graph.Graph) {
	users := g.Users()
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if !n.Is(op.BatchNormalization) || !graph.AllKnown(n.Operands[1:]) {
			continue
		}
		g.Budget.For(n.Name, n.Op)
		g.Budget.Bytes(32 * int64(len(n.In[1].Const.Data))) // factors and terms, as float64 and as constants
		scale, shift := scaleAndShift(n)
		if p := n.Operands[0].Producer; p != nil && len(users[n.Operands[0]]) == 1 && !g.IsOutput(n.Operands[0]) && foldable(p) {
			folded := scaleWeights(g, n, p, scale, shift)
			users[folded.Result] = users[n.Result]
			k--
			continue
		}
		nodes := scaleNodes(g, n, scale, shift)
		g.Nodes = slices.Replace(g.Nodes, k, k+1, nodes...)
		users[nodes[1].Result] = users[n.Result]
	}
}

// scaleAndShift returns the factor and the term of each channel.
func scaleAndShift(n *graph.Node) (scale, shift []float64) {
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
func foldable(n *graph.Node) bool {
	p, ok := n.Product()
	return ok && p.Scalable && graph.AllKnown(n.Operands[1:])
}

// scaleWeights replaces p and the normalisation n that follows it by p with other weights and bias, which it returns.
func scaleWeights(g *graph.Graph, n, p *graph.Node, scale, shift []float64) *graph.Node {
	g.Budget.Bytes(int64(len(p.Operands[1].Const.Data)))
	product, _ := p.Product()
	weights := scaleChannels(p.Operands[1].Const, product.WeightAxis, scale)
	bias := array.New(weights.DType, int64(len(shift)))
	for c, s := range shift {
		if len(p.Operands) > 2 && p.Operands[2] != nil {
			b := p.Operands[2].Const
			s += scale[c] * b.Float(min(int64(c), b.Len()-1)) // a Gemm's bias may have one element
		}
		bias.SetFloat(int64(c), s)
	}
	folded := op.Get(g.Apply(op.Node{Name: p.Name, Op: p.Op, Opset: p.Opset, Attrs: p.Attrs}, n.Result.Name,
		p.Operands[0], g.Constant(p.Operands[1].Name, weights), g.Constant(p.Name+".bias", bias)))
	g.Replace(n.Result, folded.Result)
	g.Nodes[slices.Index(g.Nodes, p)] = folded
	g.Nodes = slices.DeleteFunc(g.Nodes, func(x *graph.Node) bool { return x == n })
	return folded
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

// scaleNodes returns a multiplication and an addition equivalent to n.
func scaleNodes(g *graph.Graph, n *graph.Node, scale, shift []float64) []*graph.Node {
	shape := []int64{int64(len(scale))}
	for range n.Out.Shape.Rank() - 2 {
		shape = append(shape, 1)
	}
	known := func(name string, v []float64) *graph.Value {
		a := array.New(n.Out.DType, shape...)
		for c, x := range v {
			a.SetFloat(int64(c), x)
		}
		return g.Constant(n.Name+name, a)
	}
	mul := op.Get(g.Apply(op.Node{Name: n.Name, Op: op.Mul, Opset: n.Opset}, n.Result.Name+".scaled", n.Operands[0], known(".scale", scale)))
	add := op.Get(g.Apply(op.Node{Name: n.Name, Op: op.Add, Opset: n.Opset}, n.Result.Name, mul.Result, known(".shift", shift)))
	g.Replace(n.Result, add.Result)
	return []*graph.Node{mul, add}
}
