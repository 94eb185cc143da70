package graph

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// shareTopK lets a TopK find the positions only, and gathers the values from them, so that the search is done once.
func shareTopK(g *graph) error {
	for k := 0; k < len(g.nodes); k++ {
		n := g.nodes[k]
		if !n.is(op.TopK) || n.Output != 0 {
			continue
		}
		found, err := g.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs, Output: 1, Outputs: 2}, n.out.name+".positions", n.in...)
		if err != nil {
			return err
		}
		attrs := maps.Clone(n.Attrs)
		attrs["axis"] = &onnx.Attribute{Name: "axis", Type: onnx.AttrInt, Int: n.Int("axis", -1)}
		values, err := g.apply(op.Node{Name: n.Name, Op: op.GatherElements, Opset: n.Opset, Attrs: attrs}, n.out.name, n.in[0], found.out)
		if err != nil {
			return err
		}
		g.nodes = slices.Replace(g.nodes, k, k+1, found, values)
		g.replace(n.out, values.out)
		for _, other := range g.nodes {
			if other != found && other.is(op.TopK) && other.Output == 1 && slices.Equal(other.in, n.in) && maps.Equal(other.Attrs, n.Attrs) {
				found.out.name = other.out.name
				g.replace(other.out, found.out)
				break
			}
		}
	}
	return nil
}
