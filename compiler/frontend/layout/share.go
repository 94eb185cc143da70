package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// shareMemory places values in the memory of others, so that data movement costs no pass over memory: reshapes and
// transpositions share the bytes of their operands, slices and splits are parts of them, and the operands of a
// concatenation are computed in place. Kernels access parts through strides. An output of the model is never a part.
func shareMemory(g *graph.Graph) error {
	s := &sharing{Graph: g, readers: g.Users()}
	for _, n := range g.Nodes {
		switch n.Def().Kind {
		case op.Reshaping, op.Permute:
			n.Result.Within = &graph.Within{Of: n.Operands[0]}
		}
	}
	for _, n := range g.Nodes {
		s.takePart(n)
	}
	// Backward, so that a concatenation that is an operand of another one is placed before its own operands.
	for _, n := range slices.Backward(slices.Clone(g.Nodes)) {
		axis, ok := n.Concat()
		if !ok {
			continue
		}
		if err := s.gather(n, axis); err != nil {
			return err
		}
	}
	return nil
}

type sharing struct {
	*graph.Graph
	readers map[*graph.Value][]*graph.Node
}

// takePart makes the result of a slice a part of its operand, unless a later reshape would have no strides.
func (s *sharing) takePart(n *graph.Node) {
	begin, ok := n.Part()
	if !ok || n.Operands[0].Const != nil || !slices.Equal(n.Operands[0].Layout, n.Result.Layout) || s.IsOutput(n.Result) {
		return
	}
	n.Result.Within = &graph.Within{Of: n.Operands[0], Begin: op.Physical(begin, n.Result.Layout)}
	if views := viewsOf(s.readers, n.Result); anyOutput(s.Graph, views) || !havePlaces(views) {
		n.Result.Within = nil
		return
	}
	n.Free = true
}

func havePlaces(values []*graph.Value) bool {
	return !slices.ContainsFunc(values, func(v *graph.Value) bool { _, ok := Of(v); return !ok })
}

// gather computes the operands of a concatenation in its memory if this is possible for at least half of its
// elements, or if it continues an input. It inserts copies for the other operands.
func (s *sharing) gather(n *graph.Node, axis int) error {
	parts := concatParts(n, axis)
	var elements int64
	continues := false
	placed := make([]func(), len(n.Operands)) // how to undo each
	for k, v := range n.Operands {
		if placed[k] = s.put(v, n.Result, parts[k]); placed[k] == nil && k == 0 {
			placed[k] = s.keep(n)
			continues = placed[k] != nil
		}
		if placed[k] != nil {
			elements += array.Elements(v.Shape.Fixed())
		}
	}
	if 2*elements < array.Elements(n.Result.Shape.Fixed()) && !continues {
		for _, undo := range slices.Backward(placed) {
			if undo != nil {
				undo()
			}
		}
		return nil
	}
	n.Free = true
	for k, v := range n.Operands {
		if placed[k] != nil || array.Elements(v.Shape.Fixed()) == 0 {
			continue
		}
		c, err := copyOf(s.Graph, v, v.Name+".part")
		if err != nil {
			return err
		}
		c.Result.Layout = n.Result.Layout
		c.Result.Within = &graph.Within{Of: n.Result, Begin: parts[k]}
		n.Operands[k] = c.Result
		s.Insert(slices.Index(s.Nodes, n), c)
	}
	return nil
}

// concatParts returns the start of each operand of a concatenation, by axes in memory order.
func concatParts(n *graph.Node, axis int) [][]int64 {
	at := slices.Index(n.Result.Layout, axis)
	parts := make([][]int64, len(n.Operands))
	var end int64
	for k, v := range n.Operands {
		parts[k] = make([]int64, len(n.Result.Layout))
		parts[k][at] = end
		end += v.Shape.Fixed()[axis]
	}
	return parts
}

// put makes v the part of whole that starts at begin, and returns a function that undoes this. It returns nil if v
// must lie elsewhere: v is an input, already a part, visible in an output, or reshaped in a way that parts do not
// support.
func (s *sharing) put(v, whole *graph.Value, begin []int64) (undo func()) {
	if array.Elements(v.Shape.Fixed()) == 0 || !op.SameLayout(v.Shape.Fixed(), v.Layout, whole.Layout) {
		return nil
	}
	path := []*graph.Value{v} // up to the value that a kernel computes
	for root := v; root.Within != nil; path = append(path, root) {
		if isPart(root) || root.Producer.Operands[0] != root.Within.Of {
			return nil
		}
		root = root.Within.Of
	}
	root := path[len(path)-1]
	if root.Producer == nil || root.Within != nil {
		return nil
	}
	views := append(viewsOf(s.readers, root), root)
	if anyOutput(s.Graph, views) {
		return nil
	}
	layout := v.Layout
	undo = func() {
		for k, x := range path[:len(path)-1] {
			x.Within = &graph.Within{Of: path[k+1]}
		}
		root.Within, v.Layout = nil, layout
	}
	for k, x := range path[1:] {
		x.Within = &graph.Within{Of: path[k]}
	}
	v.Within, v.Layout = &graph.Within{Of: whole, Begin: begin}, whole.Layout
	if !havePlaces(views) {
		undo()
		return nil
	}
	return undo
}
