package rewrite

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// hoistScales moves a multiplication of queries or keys by one known number, as in vision transformers, into the
// scale of the attention. This saves a pass over memory for each operand.
func hoistScales(g *graph.Graph) error {
	readers := g.Users()
	for k, n := range g.Nodes {
		if !n.Is(op.FusedAttention) {
			continue
		}
		scale := 1.0
		for _, v := range n.Operands[:2] {
			scale *= dropScale(g, readers, v)
		}
		if scale == 1 {
			continue
		}
		attrs := maps.Clone(n.Attrs)
		attrs["scale"] = &onnx.Attribute{Name: "scale", Type: onnx.AttrFloat, Float: float32(scale * n.Float("scale", 1))}
		scaled, err := g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: attrs}, n.Result.Name, slices.Clone(n.Operands)...)
		if err != nil {
			return err
		}
		g.Splice(k, scaled)
		readers = g.Users()
	}
	return nil
}

// dropScale removes the multiplication by one known number from the producers of v and returns the number, or 1.
// Reshapes and transpositions without other readers may stand in between.
func dropScale(g *graph.Graph, readers map[*graph.Value][]*graph.Node, v *graph.Value) float64 {
	for v.Producer != nil && len(readers[v]) == 1 && !g.IsOutput(v) {
		n := v.Producer
		if n.Def().Kind == op.Reshaping || n.Def().Kind == op.Permute {
			v = n.Operands[0]
			continue
		}
		var factor *graph.Value
		x := constantOperand(n, op.Mul, &factor)
		if x == nil || factor.Const.Len() != 1 || !slices.Equal(x.Shape, v.Shape) {
			return 1
		}
		g.Replace(v, x)
		return factor.Const.Float(0)
	}
	return 1
}
