package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// splitTransposed makes two nodes of each transposed convolution: one that orders the weights by output phase, which happens
// here when they are known, and one that computes the phases.
func splitTransposed(g *graph) error {
	for k := 0; k < len(g.nodes); k++ {
		n := g.nodes[k]
		if n.Op != "ConvTranspose" {
			continue
		}
		attrs, err := op.PhaseAttrs(n.Node)
		if err != nil {
			return fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
		}
		taps, err := g.apply(op.Node{Name: n.Name, Op: op.TapsName, Opset: n.Opset, Attrs: attrs}, n.in[1].name+".taps", n.in[1])
		if err != nil {
			return err
		}
		w := taps.out
		if n.in[1].data != nil {
			ordered, err := op.Evaluate(taps.Node)
			if err != nil {
				return fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
			}
			w = g.constant(taps.out.name, ordered)
		} else {
			g.insert(k, taps)
			k++
		}
		in := slices.Clone(n.in)
		in[1] = w
		sum, err := g.apply(op.Node{Name: n.Name, Op: op.PhasesName, Opset: n.Opset, Attrs: attrs}, n.out.name, in...)
		if err != nil {
			return err
		}
		g.nodes[k] = sum
		g.replace(n.out, sum.out)
	}
	return nil
}
