package rewrite

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// shareTopK reduces a TopK to finding positions, and gathers the values by them, so that the search runs once.
func shareTopK(g *graph.Graph) {
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if !n.Is(op.TopK) || n.Output != 0 {
			continue
		}
		found := op.Get(g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs, Output: 1, Outputs: 2}, n.Result.Name+".positions", n.Operands...))
		attrs := maps.Clone(n.Attrs)
		attrs["axis"] = &onnx.Attribute{Name: "axis", Type: onnx.AttrInt, Int: n.Int("axis", -1)}
		values := op.Get(g.Apply(op.Node{Name: n.Name, Op: op.GatherElements, Opset: n.Opset, Attrs: attrs}, n.Result.Name, n.Operands[0], found.Result))
		g.Splice(k, found, values)
		for _, other := range g.Nodes {
			if other != found && other.Is(op.TopK) && other.Output == 1 && slices.Equal(other.Operands, n.Operands) && maps.Equal(other.Attrs, n.Attrs) {
				found.Result.Name = other.Result.Name
				g.Replace(other.Result, found.Result)
				break
			}
		}
	}
}
