package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// liftGemms turns a Gemm whose rows are given more axes again,
//
//	Reshape(Gemm(a, b, c))        with the columns kept
//
// into a product of an operand that has these axes, MatMul(Reshape(a), b) + c: exporters write dense layers of
// sequences like this, and the operators that follow are element-wise on the product's own shape only then, so that
// its kernel takes them in.
func liftGemms(g *graph) error {
	readers := g.users()
	for _, n := range slices.Clone(g.nodes) {
		if !isReshapedGemm(g, readers, n) {
			continue
		}
		lifted, err := lift(g, n, n.in[0].producer)
		if err != nil {
			return err
		}
		k := slices.Index(g.nodes, n)
		g.nodes = slices.Replace(g.nodes, k, k+1, lifted...)
		g.replace(n.out, lifted[len(lifted)-1].out)
	}
	return nil
}

func isReshapedGemm(g *graph, readers map[*value][]*node, n *node) bool {
	if n.Def().Kind != op.Reshaping || !n.in[0].producer.is(op.Gemm) {
		return false
	}
	gemm, rank := n.in[0].producer, len(n.Out.Shape)
	columns := gemm.Out.Shape[1]
	return rank > 2 && n.Out.Shape[rank-1] == columns && len(readers[gemm.out]) == 1 && !g.isOutput(gemm.out) && allKnown(gemm.in[1:]) &&
		gemm.Int("transA", 0) == 0 && gemm.Float("alpha", 1) == 1 && gemm.Float("beta", 1) == 1 &&
		(len(gemm.in) < 3 || gemm.in[2] == nil || gemm.in[2].Const.Len() == columns || gemm.in[2].Const.Len() == 1)
}

// lift is the product with the axes of a reshape of its result.
func lift(g *graph, reshape, gemm *node) ([]*node, error) {
	shape := slices.Clone(reshape.Out.Shape)
	name, opset := gemm.Name, gemm.Opset
	weights := gemm.in[1]
	if gemm.Int("transB", 0) != 0 {
		g.budget.For(gemm.Name, gemm.Op)
		g.budget.Bytes(int64(len(weights.Const.Data)))
		weights = g.constant(weights.name+".transposed", op.Arrange(weights.Const, []int{1, 0}))
	}
	shape[len(shape)-1] = weights.Shape[0]
	to := g.constant(name+".shape", array.FromInt64(shape, int64(len(shape))))
	var nodes []*node
	apply := func(kind string, attrs map[string]*onnx.Attribute, in ...*value) (*value, error) {
		n, err := g.apply(op.Node{Name: name, Op: kind, Opset: opset, Attrs: attrs}, fmt.Sprintf("%s.%s", name, kind), in...)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		return n.out, nil
	}
	rows, err := apply(op.Reshape, nil, gemm.in[0], to)
	if err != nil {
		return nil, err
	}
	out, err := apply(op.MatMul, nil, rows, weights)
	if err != nil {
		return nil, err
	}
	if len(gemm.in) > 2 && gemm.in[2] != nil {
		bias := gemm.in[2]
		flat := g.constant(bias.name+".flat", &array.Array{DType: bias.DType, Shape: []int64{bias.Const.Len()}, Data: bias.Const.Data})
		_, err = apply(op.Add, nil, out, flat)
	}
	return nodes, err
}
