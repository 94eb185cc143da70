package frontend

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// reshapes and moves list operators whose result has the elements of operand 0 and no others. reshapes keep their
// order.
var (
	reshapes = []string{op.Reshape, op.Squeeze, op.Unsqueeze, op.Copy, op.Cast, "Flatten"}
	moves    = append([]string{op.Transpose, op.Expand, "Tile"}, reshapes...)
)

// indexChecks returns conditions on the inputs whose elements index axes in every execution, directly or after moves
// and casts. Indices computed otherwise, and those that only a branch of an If reads, are not checked: kernels clamp
// them.
func indexChecks(g *graph.Graph) []graph.IndexCheck {
	c := indexChecker{seen: map[indexValue]bool{}}
	for _, n := range alwaysRun(g) {
		if operand, extents := op.IndexedAxes(n.Node); len(extents) > 0 {
			c.add(n.Operands[operand], extents)
		}
	}
	return c.checks
}

// indexChecker collects the checks of values of indices, each once: a value may be concatenated with itself.
type indexChecker struct {
	checks []graph.IndexCheck
	seen   map[indexValue]bool
}

// indexValue is a value of indices and the extents of the axes that it indexes.
type indexValue struct {
	*graph.Value
	extents *int64
	count   int64
}

// add adds the checks of a value of indices. Several extents belong to the positions of its last axis.
func (c *indexChecker) add(v *graph.Value, extents []int64) {
	n, count, last := v.Producer, int64(len(extents)), len(v.Shape)-1
	if array.Elements(v.Shape) == 0 || c.seen[indexValue{v, &extents[0], count}] {
		return
	}
	c.seen[indexValue{v, &extents[0], count}] = true
	switch {
	case v.Const != nil, v.DType == array.Float16, v.DType == array.BFloat16, v.DType.IsFloat() && n.Is(op.Cast):
	case n == nil && (count == 1 || v.Shape[last]%count == 0):
		for k, extent := range extents {
			c.checks = append(c.checks, graph.IndexCheck{Input: v, First: int64(k), Step: count, Extent: extent})
		}
	case n == nil:
	case slices.ContainsFunc(reshapes, n.Is), count == 1 && slices.ContainsFunc(moves, n.Is):
		c.add(n.Operands[0], extents)
	case n.Is(op.Concat) && (count == 1 || v.Shape[last] == count):
		for _, operand := range n.Operands {
			own := extents
			if count > 1 && operand.Shape[last] < count {
				own, extents = extents[:operand.Shape[last]], extents[operand.Shape[last]:]
			}
			c.add(operand, own)
		}
	}
}

// alwaysRun returns the nodes whose results are needed regardless of the conditions of Where by one bool, which If
// becomes.
func alwaysRun(g *graph.Graph) (nodes []*graph.Node) {
	needed := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		needed[v] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if !needed[n.Result] {
			continue
		}
		nodes = append(nodes, n)
		operands := n.Operands
		if n.Is(op.Where) && array.Elements(operands[0].Shape) == 1 {
			operands = operands[:1]
		}
		for _, v := range operands {
			needed[v] = true
		}
	}
	slices.Reverse(nodes)
	return nodes
}
