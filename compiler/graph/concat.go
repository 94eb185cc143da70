package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// lineUp is a concatenation and the values that it lines up, when those it reads from other concatenations are taken
// apart.
type lineUp struct {
	*node
	axis  int
	parts []*value
}

// nestConcats makes a concatenation read an earlier one where that lines up some of its operands already, as in a
// dense block, where every layer reads the results of all before it. All then share one buffer.
func nestConcats(g *graph) error {
	var earlier []lineUp
	for k, n := range g.nodes {
		axis, ok := n.Concat()
		if !ok {
			continue
		}
		whole := lineUp{n, axis, n.in}
		if inner, at := longestWithin(whole, earlier); inner != nil {
			in := slices.Replace(slices.Clone(n.in), at, at+len(inner.parts), inner.out)
			nested, err := g.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.out.name, in...)
			if err != nil {
				return err
			}
			g.nodes[k], whole.node = nested, nested
			g.replace(n.out, nested.out)
		}
		earlier = append(earlier, whole)
	}
	return nil
}

// longestWithin is the concatenation along the same axis that lines up the longest run of n's operands, and where the
// run begins.
func longestWithin(n lineUp, earlier []lineUp) (inner *lineUp, at int) {
	for i := range earlier {
		c := &earlier[i]
		size := len(c.parts)
		if size < 2 || size >= len(n.in) || c.axis != n.axis || inner != nil && size <= len(inner.parts) {
			continue
		}
		for k := range len(n.in) - size + 1 {
			if slices.Equal(n.in[k:k+size], c.parts) {
				inner, at = c, k
				break
			}
		}
	}
	return inner, at
}
