package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// lineUp is a concatenation with its operands, after those from other concatenations are expanded.
type lineUp struct {
	*graph.Node
	axis  int
	parts []*graph.Value
}

// nestConcats makes a concatenation read an earlier one that already contains some of its operands, as in a dense
// block, where every layer reads the results of all before it. All then share one buffer.
func nestConcats(g *graph.Graph) {
	var earlier []lineUp
	for k, n := range g.Nodes {
		axis, ok := n.Concat()
		if !ok {
			continue
		}
		whole := lineUp{n, axis, n.Operands}
		if inner, at := longestWithin(whole, earlier); inner != nil {
			in := slices.Replace(slices.Clone(n.Operands), at, at+len(inner.parts), inner.Result)
			nested := op.Get(g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name, in...))
			g.Nodes[k], whole.Node = nested, nested
			g.Replace(n.Result, nested.Result)
		}
		earlier = append(earlier, whole)
	}
}

// longestWithin returns the concatenation along the same axis that contains the longest run of n's operands, and
// the start of the run.
func longestWithin(n lineUp, earlier []lineUp) (inner *lineUp, at int) {
	for i := range earlier {
		c := &earlier[i]
		size := len(c.parts)
		if size < 2 || size >= len(n.Operands) || c.axis != n.axis || inner != nil && size <= len(inner.parts) {
			continue
		}
		for k := range len(n.Operands) - size + 1 {
			if slices.Equal(n.Operands[k:k+size], c.parts) {
				inner, at = c, k
				break
			}
		}
	}
	return inner, at
}
