package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// liftGemms turns a Gemm whose rows are reshaped to more axes,
//
//	Reshape(Gemm(a, b, c))        with the columns kept
//
// into a product of an operand with these axes, MatMul(Reshape(a), b) + c. Exporters write dense layers of
// sequences in this form, and only then are the operators that follow elementwise on the product's shape, so that
// its kernel absorbs them.
func liftGemms(g *graph.Graph) {
	readers := g.Users()
	for _, n := range slices.Clone(g.Nodes) {
		if isReshapedGemm(g, readers, n) {
			g.Splice(slices.Index(g.Nodes, n), lift(g, n, n.Operands[0].Producer)...)
		}
	}
}

func isReshapedGemm(g *graph.Graph, readers map[*graph.Value][]*graph.Node, n *graph.Node) bool {
	if n.Def().Kind != op.Reshaping || !n.Operands[0].Producer.Is(op.Gemm) {
		return false
	}
	gemm, rank := n.Operands[0].Producer, n.Out.Shape.Rank()
	columns := gemm.Out.Shape.At(1)
	return rank > 2 && n.Out.Shape.At(rank-1) == columns && len(readers[gemm.Result]) == 1 && !g.IsOutput(gemm.Result) && graph.AllKnown(gemm.Operands[1:]) &&
		gemm.Int("transA", 0) == 0 && gemm.Float("alpha", 1) == 1 && gemm.Float("beta", 1) == 1 &&
		(len(gemm.Operands) < 3 || gemm.Operands[2] == nil || columns.Is(gemm.Operands[2].Const.Len()) || gemm.Operands[2].Const.Len() == 1)
}

// lift returns the product with the axes of a reshape of its result.
func lift(g *graph.Graph, reshape, gemm *graph.Node) []*graph.Node {
	name, opset := gemm.Name, gemm.Opset
	weights := gemm.Operands[1]
	if gemm.Int("transB", 0) != 0 {
		g.Budget.For(gemm.Name, gemm.Op)
		weights = g.Constant(weights.Name+".transposed", g.Budget.Arrange(weights.Const, []int{1, 0}))
	}
	shape := reshape.Out.Shape.With(reshape.Out.Shape.Rank()-1, weights.Shape.At(0))
	apply := func(kind string, in ...*graph.Value) *graph.Node {
		return op.Get(g.Apply(op.Node{Name: name, Op: kind, Opset: opset}, name+"."+kind, in...))
	}
	rows := op.Get(viewOf(g, gemm.Operands[0], shape, name, name+"."+op.Reshape))
	product := apply(op.MatMul, rows.Result, weights)
	nodes := []*graph.Node{rows, product}
	if len(gemm.Operands) > 2 && gemm.Operands[2] != nil {
		bias := gemm.Operands[2]
		flat := g.Constant(bias.Name+".flat", &array.Array{DType: bias.DType, Shape: []int64{bias.Const.Len()}, Data: bias.Const.Data})
		nodes = append(nodes, apply(op.Add, product.Result, flat))
	}
	nodes[len(nodes)-1].Result.Name = reshape.Result.Name
	return nodes
}
