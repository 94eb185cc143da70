package rewrite

import "github.com/tilth-dev/tilth/compiler/graph"

// AlignRows returns the pass that stores constant factors of products with contiguous terms, if rows of columns
// would not be aligned to the given bytes and rows of terms are, for elements of elementBytes. A table of 50,257
// words, for example, can be read in vectors only this way.
func AlignRows(bytes, elementBytes int64) graph.Pass {
	return graph.Pass{Name: "align-rows", Run: func(g *graph.Graph) error {
		readers := g.Users()
		for _, n := range g.Nodes {
			if !multipliesRows(n) || g.IsOutput(n.Operands[1]) {
				continue
			}
			w := n.Operands[1]
			terms, columns := w.Shape.Fixed()[0], w.Shape.Fixed()[1]
			if columns*elementBytes%bytes == 0 || terms*elementBytes%bytes != 0 {
				continue
			}
			alone := true
			for _, reader := range readers[w] {
				alone = alone && multipliesRows(reader) && reader.Operands[0] != w
			}
			if alone {
				w.Layout = []int{1, 0}
			}
		}
		return nil
	}}
}

// multipliesRows reports whether a node multiplies by a constant matrix.
func multipliesRows(n *graph.Node) bool {
	return n.Is("MatMul") && n.Operands[1].Const != nil && n.Operands[1].Shape.Rank() == 2
}
