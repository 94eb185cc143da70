package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// splitDequantised gives each reader of a dequantised value a dequantisation of its own. Then what is stored are the
// integers, a quarter of the memory, and each reader's kernel makes floats of them while it reads.
func splitDequantised(g *graph) error {
	users := g.users()
	for _, n := range slices.Clone(g.nodes) {
		if !n.is(op.Dequantize) || g.isOutput(n.out) || len(users[n.out]) < 2 {
			continue
		}
		for _, reader := range users[n.out][1:] {
			own, err := g.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.out.name, n.in...)
			if err != nil {
				return err
			}
			g.insert(slices.Index(g.nodes, n)+1, own)
			for k, v := range reader.in {
				if v == n.out {
					reader.in[k] = own.out
				}
			}
		}
	}
	return nil
}
