package placement

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
)

// continued is the input that an output of the model continues, as the keys and values of all positions do those of
// the positions before: the first operand of a concatenation along an axis whose extent each execution chooses. nil
// where the node is nothing of the kind.
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

// keep makes an input the beginning of the output that continues it, where an execution leaves it as it is, and
// returns how to undo that; nil when it must lie elsewhere.
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
