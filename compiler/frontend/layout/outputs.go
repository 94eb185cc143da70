package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// separateOutputs copies an output that would otherwise share memory with an input or another output through
// reshapes and transpositions.
func separateOutputs(g *graph.Graph) {
	taken := map[*graph.Value]bool{}
	for k, v := range g.Outputs {
		if v.Shape.IsEmpty() {
			continue // an empty constant
		}
		root := v
		for root.Producer != nil && root.Producer.IsView() {
			root = root.Producer.Operands[0]
		}
		if root.Producer == nil || taken[root] {
			copyOutput(g, k)
			continue
		}
		taken[root] = true
	}
	separateStates(g)
}

// separateStates copies the next value of a state that is a view of a state: the states change while they are read.
func separateStates(g *graph.Graph) {
	for _, l := range g.Loops {
		for k, v := range l.Next() {
			root := v
			for root.Producer != nil && root.Producer.Control == nil && root.Producer.IsView() {
				root = root.Producer.Operands[0]
			}
			if root.Producer == nil || root.Producer.Op != op.LoopState {
				continue
			}
			n := copyOf(g, v, v.Name+".next")
			g.Insert(g.FirstEnd(l), n)
			l.SetNext(k, n.Result)
		}
	}
}

// layStates copies the values of states that are not in row-major order, as loops move them.
func layStates(g *graph.Graph) {
	isInRows := func(v *graph.Value) bool {
		rows := op.RowMajor(v.Shape.Rank())
		if v.Const == nil && !op.SameLayout(v.Shape.Max(), v.Layout, rows) {
			return false
		}
		v.Layout = rows
		return true
	}
	for _, l := range g.Loops {
		for _, n := range l.Control {
			if n.Op != op.LoopState || isInRows(n.Operands[0]) {
				continue
			}
			c := copyOf(g, n.Operands[0], n.Operands[0].Name+".rows")
			n.Operands[0] = c.Result
			g.Insert(slices.Index(g.Nodes, n), c)
		}
		for k, v := range l.Next() {
			if isInRows(v) {
				continue
			}
			c := copyOf(g, v, v.Name+".rows")
			g.Insert(g.FirstEnd(l), c)
			l.SetNext(k, c.Result)
		}
	}
}

// copyOutput inserts a copy between output k and its value.
func copyOutput(g *graph.Graph, k int) {
	v := g.Outputs[k]
	n := copyOf(g, v, v.Name)
	v.Name += ".source"
	g.Nodes = append(g.Nodes, n)
	g.Outputs[k] = n.Result
}

func copyOf(g *graph.Graph, v *graph.Value, name string) *graph.Node {
	n := op.Get(g.Apply(op.Node{Name: name, Op: op.Copy}, name, v))
	n.Result.Layout = op.RowMajor(v.Shape.Rank())
	return n
}

// continued returns the input that an output of the model continues, as keys and values of all positions continue
// those of earlier ones: the first operand of a concatenation along an open axis. It returns nil for other nodes.
func continued(g *graph.Graph, n *graph.Node) *graph.Value {
	axis, ok := n.Concat()
	if !ok || !g.IsOutput(n.Result) {
		return nil
	}
	if v := n.Operands[0]; slices.Contains(g.Inputs, v) && v.Shape.At(axis).IsOpen() && !g.IsOutput(v) {
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
	v.Within = &graph.Within{Of: n.Result, Begin: make([]extent.Extent, v.Shape.Rank())}
	if !havePlaces(viewsOf(s.readers, v)) {
		undo()
		return nil
	}
	return undo
}
