package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// shareMemory places values in the memory of others, so that data movement costs no pass over memory: reshapes and
// transpositions share the bytes of their operands, slices and splits are parts of them, and the operands of a
// concatenation are computed in place. Kernels access parts through strides. An output of the model is never a part.
func shareMemory(g *graph.Graph) {
	g.GroupLoops()
	s := &sharing{Graph: g, readers: g.Users()}
	for _, n := range g.Nodes {
		switch n.Def().Kind {
		case op.Reshaping, op.Permute:
			n.Result.Within = &graph.Within{Of: n.Operands[0]}
		case op.Control:
			if n.Op == op.LoopEnd { // what the loop leaves in the memory of the state
				n.Result.Within = &graph.Within{Of: n.Control.Loop.States()[n.Control.State]}
			}
		}
	}
	for _, n := range g.Nodes {
		s.takePart(n)
	}
	// Backward, so that a concatenation that is an operand of another one is placed before its own operands.
	for _, n := range slices.Backward(slices.Clone(g.Nodes)) {
		if axis, ok := n.Concat(); ok {
			s.gather(n, axis)
		} else if n.Op == op.LoopStack {
			s.stack(n)
		}
	}
}

type sharing struct {
	*graph.Graph
	readers map[*graph.Value][]*graph.Node
	// stacking is the loop whose parts of a stacked result are placed; its next states may be among them.
	stacking *graph.Loop
}

// stack computes the parts of a stacked result in its memory, or copies them there.
func (s *sharing) stack(n *graph.Node) {
	v, begin := n.Operands[0], make([]extent.Extent, n.Result.Shape.Rank())
	begin[0] = n.Control.At
	root := v
	for root.Within != nil {
		root = root.Within.Of
	}
	inside := append(slices.Clone(n.Loops), n.Control.Loop)
	s.stacking = n.Control.Loop
	defer func() { s.stacking = nil }()
	if p := root.Producer; p != nil && p.Control == nil && slices.Equal(p.Loops, inside) && s.put(v, n.Result, begin) != nil {
		return
	}
	c := copyOf(s.Graph, v, v.Name+".part")
	c.Result.Within, c.Loops = &graph.Within{Of: n.Result, Begin: begin}, inside
	n.Operands[0] = c.Result
	s.Insert(s.FirstEnd(n.Control.Loop), c)
}

// takePart makes the result of a slice a part of its operand, unless a later reshape would have no strides.
func (s *sharing) takePart(n *graph.Node) {
	begin, ok := n.Part()
	if !ok || !staysInside(n.Out.Shape, begin, n.In[0].Shape) || n.Operands[0].Const != nil || !slices.Equal(n.Operands[0].Layout, n.Result.Layout) || s.IsOutput(n.Result) {
		return
	}
	n.Result.Within = &graph.Within{Of: n.Operands[0], Begin: extent.ShapeOf(begin...).Permuted(n.Result.Layout).Extents()}
	if views := viewsOf(s.readers, n.Result); anyOutput(s.Graph, views) || !havePlaces(views) {
		n.Result.Within = nil
		return
	}
	n.Free = true
}

// staysInside reports whether packages can compute where a part of a value starts, and the part, which has room for
// the most of its extents, does not exceed the value wherever it starts. All are by axes in one order.
func staysInside(part extent.Shape, begin []extent.Extent, whole extent.Shape) bool {
	for k, e := range begin {
		if e.IsOpen() && e.Max()+part.At(k).Max() > whole.At(k).Max() {
			return false
		}
	}
	return !slices.ContainsFunc(begin, func(e extent.Extent) bool { _, _, ok := e.Linear(); return !ok })
}

func havePlaces(values []*graph.Value) bool {
	return !slices.ContainsFunc(values, func(v *graph.Value) bool { _, ok := Of(v); return !ok })
}

// gather computes the operands of a concatenation in its memory if this is possible for at least half of its
// elements, or if it continues an input. It inserts copies for the other operands.
func (s *sharing) gather(n *graph.Node, axis int) {
	parts := concatParts(n, axis)
	// Kernels compute whole tiles, which may overwrite what follows a part of open extent. Nothing follows the one
	// part behind an input that an output continues.
	moves := extent.ShapeOf(slices.Concat(parts...)...).IsOpen()
	if moves && (continued(s.Graph, n) == nil || len(n.Operands) != 2) {
		return
	}
	if last := n.Operands[len(parts)-1]; moves && !staysInside(last.Shape.Permuted(n.Result.Layout), parts[1], n.Result.Shape.Permuted(n.Result.Layout)) {
		return
	}
	var elements int64
	continues := false
	placed := make([]func(), len(n.Operands)) // how to undo each
	for k, v := range n.Operands {
		if placed[k] = s.put(v, n.Result, parts[k]); placed[k] == nil && k == 0 {
			placed[k] = s.keep(n)
			continues = placed[k] != nil
		}
		if placed[k] != nil {
			elements += array.Elements(v.Shape.Max())
		}
	}
	if !continues && (moves || 2*elements < array.Elements(n.Result.Shape.Max())) {
		for _, undo := range slices.Backward(placed) {
			if undo != nil {
				undo()
			}
		}
		return
	}
	n.Free = true
	for k, v := range n.Operands {
		if placed[k] != nil || array.Elements(v.Shape.Max()) == 0 {
			continue
		}
		c := copyOf(s.Graph, v, v.Name+".part")
		c.Result.Layout = n.Result.Layout
		c.Result.Within = &graph.Within{Of: n.Result, Begin: parts[k]}
		n.Operands[k] = c.Result
		s.Insert(slices.Index(s.Nodes, n), c)
	}
}

// concatParts returns the start of each operand of a concatenation, by axes in memory order.
func concatParts(n *graph.Node, axis int) [][]extent.Extent {
	at := slices.Index(n.Result.Layout, axis)
	parts := make([][]extent.Extent, len(n.Operands))
	var end extent.Extent
	for k, v := range n.Operands {
		parts[k] = make([]extent.Extent, len(n.Result.Layout))
		parts[k][at] = end
		end = end.Plus(v.Shape.At(axis))
	}
	return parts
}

// put makes v the part of whole that starts at begin, and returns a function that undoes this. It returns nil if v
// must lie elsewhere: v is an input, already a part, visible in an output, or reshaped in a way that parts do not
// support.
func (s *sharing) put(v, whole *graph.Value, begin []extent.Extent) (undo func()) {
	if array.Elements(v.Shape.Max()) == 0 || !op.SameLayout(v.Shape.Max(), v.Layout, whole.Layout) {
		return nil
	}
	path := []*graph.Value{v} // up to the value that a kernel computes
	for root := v; root.Within != nil; path = append(path, root) {
		if root.Within.Begin != nil || root.Producer.Operands[0] != root.Within.Of {
			return nil
		}
		root = root.Within.Of
	}
	root := path[len(path)-1]
	if root.Producer == nil || root.Producer.Is(op.LoopState) || root.Within != nil {
		return nil
	}
	views := append(viewsOf(s.readers, root), root)
	if slices.ContainsFunc(views, func(v *graph.Value) bool { return s.IsOutputBeside(s.stacking, v) }) {
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
