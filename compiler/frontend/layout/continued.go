package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
)

// continued returns the input that an output of the model continues, as keys and values of all positions continue
// those of earlier ones: the first operand of a concatenation along an open axis. It returns nil for other nodes.
func continued(g *graph.Graph, n *graph.Node) *graph.Value {
	axis, ok := n.Concat()
	if !ok || !g.IsOutput(n.Result) {
		return nil
	}
	if v := n.Operands[0]; slices.Contains(g.Varying[v], axis) && !g.IsOutput(v) {
		return v
	}
	return nil
}

// keep places an input at the start of the output that continues it, where executions leave it unchanged. It
// returns a function that undoes this, or nil if the input must lie elsewhere.
func (s *sharing) keep(n *graph.Node) (undo func()) {
	v := continued(s.Graph, n)
	if v == nil || v.Within != nil || !slices.Equal(v.Layout, n.Result.Layout) {
		return nil
	}
	undo = func() { v.Within = nil }
	v.Within = &graph.Within{Of: n.Result, Begin: make([]int64, len(v.Shape))}
	if !havePlaces(viewsOf(s.readers, v)) {
		undo()
		return nil
	}
	return undo
}
