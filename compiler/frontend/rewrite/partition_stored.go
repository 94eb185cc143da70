package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// maxStored limits the results that a kernel stores.
const maxStored = 4

// also returns the elementwise operator that a kernel computes after its last result although that result has other
// readers or is an output. The result is stored as well, which saves reading it again in another kernel. It returns
// nil if there is no such operator.
func (p *partitioner) also(kernel *graph.Kernel) []*graph.Node {
	tail := kernel.Tail()
	if len(kernel.Stored) >= maxStored-1 || tail.IsView() || !storesMore(kernel.Anchor) {
		return nil
	}
	for _, n := range p.readers[tail.Result] {
		if n.Kernel != nil || n.Def().Kind != op.ElementWise || !slices.Equal(n.Out.Shape, tail.Out.Shape) || !slices.Equal(n.Result.Layout, tail.Result.Layout) {
			continue
		}
		if n.Is(op.Dequantize) { // its readers convert the stored integers themselves
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

// storesMore reports whether the schedules of a kernel can store intermediate results tile by tile: those of
// products, windows and elementwise operators can.
func storesMore(anchor *graph.Node) bool {
	return anchor.Def().Tiled || anchor.Def().Kind == op.ElementWise
}

// canTake reports whether a kernel may compute a region after its last result. If it stores several results, all
// its inputs must be computed before the first one, or two kernels could wait for each other. All results must have
// the same layout, so that one loop nest can store them.
func canTake(kernel *graph.Kernel, region []*graph.Node) bool {
	if len(kernel.Stored) == 0 {
		return true
	}
	if slices.ContainsFunc(region, func(n *graph.Node) bool { return !slices.Equal(n.Result.Layout, kernel.Stored[0].Layout) }) {
		return false
	}
	return isReady(kernel, region, kernel.Begin())
}

// isReady reports whether the inputs of the nodes are computed in the kernel, or by nodes of lower order.
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
