package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// splitDequantised gives each reader of a dequantised value its own dequantisation. The integers are stored then,
// in a quarter of the memory, and each reader's kernel converts them while it reads.
func splitDequantised(g *graph.Graph) error {
	users := g.Users()
	for _, n := range slices.Clone(g.Nodes) {
		if !n.Is(op.Dequantize) || g.IsOutput(n.Result) || len(users[n.Result]) < 2 {
			continue
		}
		for _, reader := range users[n.Result][1:] {
			own, err := g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name, n.Operands...)
			if err != nil {
				return err
			}
			g.Insert(slices.Index(g.Nodes, n)+1, own)
			for k, v := range reader.Operands {
				if v == n.Result {
					reader.Operands[k] = own.Result
				}
			}
		}
	}
	return nil
}
