package fusion

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// maxStored bounds the results that one kernel stores.
const maxStored = 4

// also is the element-wise operator that a kernel computes after its last result although that has other readers, or
// is an output: the result is stored as well, which saves reading it again in a kernel of its own. nil when there is
// none.
func (p *partitioner) also(kernel *graph.Kernel) []*graph.Node {
	tail := kernel.Tail()
	if len(kernel.Stored) >= maxStored-1 || tail.IsView() || !storesMore(kernel.Anchor) {
		return nil
	}
	for _, n := range p.readers[tail.Result] {
		if n.Kernel != nil || n.Def().Kind != op.ElementWise || !slices.Equal(n.Out.Shape, tail.Out.Shape) || !slices.Equal(n.Result.Layout, tail.Result.Layout) {
			continue
		}
		if n.Is(op.Dequantize) { // its readers make floats of the integers that are stored anyway
			continue
		}
		if p.chooses(n) || p.yields(n, map[*graph.Value]bool{tail.Result: true}) {
			continue
		}
		if isReady(kernel, []*graph.Node{n}, tail.Order) {
			return []*graph.Node{n}
		}
	}
	return nil
}

// storesMore reports whether the schedules of a kernel store results on the way tile by tile: those of products, of
// windows and of element-wise operators do.
func storesMore(anchor *graph.Node) bool {
	return anchor.Def().Tiled || anchor.Def().Kind == op.ElementWise
}

// canTake reports whether a kernel may compute a region after its last result. Once it stores more than one, what it
// reads must be computed before the first of them: else two kernels could wait for one another. And all results must
// have the same layout, to be stored by one nest of loops.
func canTake(kernel *graph.Kernel, region []*graph.Node) bool {
	if len(kernel.Stored) == 0 {
		return true
	}
	if slices.ContainsFunc(region, func(n *graph.Node) bool { return !slices.Equal(n.Result.Layout, kernel.Stored[0].Layout) }) {
		return false
	}
	return isReady(kernel, region, kernel.Begin())
}

// isReady reports whether everything that the nodes read is computed in the kernel, or by a node of lower order.
func isReady(kernel *graph.Kernel, nodes []*graph.Node, order int) bool {
	if len(kernel.Stored) > 0 {
		order = kernel.Begin()
	}
	for _, n := range nodes {
		for _, v := range n.Operands {
			if v == nil || v.Producer == nil || v.Producer.Order < order {
				continue
			}
			if !slices.Contains(kernel.Nodes, v.Producer) && !slices.Contains(nodes, v.Producer) {
				return false
			}
		}
	}
	return true
}
