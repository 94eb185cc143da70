package rewrite

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// liftGemms turns a Gemm whose rows are reshaped to more axes,
//
//	Reshape(Gemm(a, b, c))        with the columns kept
//
// into a product of an operand with these axes, MatMul(Reshape(a), b) + c. Exporters write dense layers of
// sequences in this form, and only then are the operators that follow elementwise on the product's shape, so that
// its kernel absorbs them.
func liftGemms(g *graph.Graph) error {
	readers := g.Users()
	for _, n := range slices.Clone(g.Nodes) {
		if !isReshapedGemm(g, readers, n) {
			continue
		}
		lifted, err := lift(g, n, n.Operands[0].Producer)
		if err != nil {
			return err
		}
		g.Splice(slices.Index(g.Nodes, n), lifted...)
	}
	return nil
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
func lift(g *graph.Graph, reshape, gemm *graph.Node) ([]*graph.Node, error) {
	name, opset := gemm.Name, gemm.Opset
	weights := gemm.Operands[1]
	if gemm.Int("transB", 0) != 0 {
		g.Budget.For(gemm.Name, gemm.Op)
		weights = g.Constant(weights.Name+".transposed", g.Budget.Arrange(weights.Const, []int{1, 0}))
	}
	shape := reshape.Out.Shape.With(reshape.Out.Shape.Rank()-1, weights.Shape.At(0))
	var nodes []*graph.Node
	apply := func(kind string, attrs map[string]*onnx.Attribute, in ...*graph.Value) (*graph.Value, error) {
		n, err := g.Apply(op.Node{Name: name, Op: kind, Opset: opset, Attrs: attrs}, fmt.Sprintf("%s.%s", name, kind), in...)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		return n.Result, nil
	}
	rows, err := viewOf(g, gemm.Operands[0], shape, name, fmt.Sprintf("%s.%s", name, op.Reshape))
	if err != nil {
		return nil, err
	}
	nodes = append(nodes, rows)
	out, err := apply(op.MatMul, nil, rows.Result, weights)
	if err != nil {
		return nil, err
	}
	if len(gemm.Operands) > 2 && gemm.Operands[2] != nil {
		bias := gemm.Operands[2]
		flat := g.Constant(bias.Name+".flat", &array.Array{DType: bias.DType, Shape: []int64{bias.Const.Len()}, Data: bias.Const.Data})
		if out, err = apply(op.Add, nil, out, flat); err != nil {
			return nil, err
		}
	}
	out.Name = reshape.Result.Name
	return nodes, nil
}
