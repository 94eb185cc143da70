package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
)

// shareMemory decides which values lie in the memory of others, so that moving elements costs no pass over memory:
// reshapes and transpositions are the bytes of their operands, slices and splits parts of them, and the operands of a
// concatenation are computed where it wants them. Kernels read and write parts through strides. An output of the model
// is never a part.
func shareMemory(g *graph) error {
	s := &sharing{graph: g, readers: g.users()}
	for _, n := range g.nodes {
		switch n.Def().Kind {
		case op.Reshaping, op.Permute:
			n.out.within = &within{of: n.in[0]}
		}
	}
	for _, n := range g.nodes {
		s.takePart(n)
	}
	// From the last on: a concatenation that is an operand of another finds its own place before it gives places away.
	for _, n := range slices.Backward(slices.Clone(g.nodes)) {
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
	*graph
	readers map[*value][]*node
}

// takePart makes the result of a slice a part of its operand, unless a reshape of it then has no strides.
func (s *sharing) takePart(n *node) {
	begin, ok := n.Part()
	if !ok || n.in[0].Const != nil || !slices.Equal(n.in[0].layout, n.out.layout) || s.isOutput(n.out) {
		return
	}
	n.out.within = &within{of: n.in[0], begin: op.Physical(begin, n.out.layout)}
	if views := viewsOf(s.readers, n.out); anyOutput(s.graph, views) || !havePlaces(views) {
		n.out.within = nil
		return
	}
	n.free = true
}

func havePlaces(values []*value) bool {
	return !slices.ContainsFunc(values, func(v *value) bool { _, ok := placeOf(v); return !ok })
}

// gather computes the operands of a concatenation in its memory when at least half of its elements can be, and puts
// copies before it for the others.
func (s *sharing) gather(n *node, axis int) error {
	parts := concatParts(n, axis)
	var elements int64
	placed := make([]func(), len(n.in)) // how to undo each
	for k, v := range n.in {
		if placed[k] = s.put(v, n.out, parts[k]); placed[k] != nil {
			elements += array.Elements(v.Shape)
		}
	}
	if 2*elements < array.Elements(n.out.Shape) {
		for _, undo := range slices.Backward(placed) {
			if undo != nil {
				undo()
			}
		}
		return nil
	}
	n.free = true
	for k, v := range n.in {
		if placed[k] != nil || array.Elements(v.Shape) == 0 {
			continue
		}
		c, err := copyOf(s.graph, v, v.name+".part")
		if err != nil {
			return err
		}
		c.out.layout = n.out.layout
		c.out.within = &within{of: n.out, begin: parts[k]}
		n.in[k] = c.out
		s.insert(slices.Index(s.nodes, n), c)
	}
	return nil
}

// concatParts is where each operand of a concatenation along an axis begins, by axes in the order of memory.
func concatParts(n *node, axis int) [][]int64 {
	at := slices.Index(n.out.layout, axis)
	parts := make([][]int64, len(n.in))
	var end int64
	for k, v := range n.in {
		parts[k] = make([]int64, len(n.out.layout))
		parts[k][at] = end
		end += v.Shape[axis]
	}
	return parts
}

// put makes v the part of whole that begins at begin, and returns how to undo that; nil when v must lie elsewhere: it
// arrives from outside, is part of something already, is seen by an output, or is reshaped in a way that parts cannot
// be.
func (s *sharing) put(v, whole *value, begin []int64) (undo func()) {
	if array.Elements(v.Shape) == 0 || !op.SameLayout(v.Shape, v.layout, whole.layout) {
		return nil
	}
	path := []*value{v} // to the value that a kernel computes
	for root := v; root.within != nil; path = append(path, root) {
		if isPart(root) || root.producer.in[0] != root.within.of {
			return nil
		}
		root = root.within.of
	}
	root := path[len(path)-1]
	if root.producer == nil || root.within != nil {
		return nil
	}
	views := append(viewsOf(s.readers, root), root)
	if anyOutput(s.graph, views) {
		return nil
	}
	layout := v.layout
	undo = func() {
		for k, x := range path[:len(path)-1] {
			x.within = &within{of: path[k+1]}
		}
		root.within, v.layout = nil, layout
	}
	for k, x := range path[1:] {
		x.within = &within{of: path[k]}
	}
	v.within, v.layout = &within{of: whole, begin: begin}, whole.layout
	if !havePlaces(views) {
		undo()
		return nil
	}
	return undo
}
