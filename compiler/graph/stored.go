package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// maxStored bounds the results that one kernel stores.
const maxStored = 4

// also is the element-wise operator that a kernel computes after its last result although that has other readers, or
// is an output: the result is stored as well, which saves reading it again in a kernel of its own. nil when there is
// none.
func (p *partitioner) also(grp *group) []*node {
	tail := grp.tail()
	if len(grp.stored) >= maxStored-1 || tail.isView() || !storesMore(grp.anchor) {
		return nil
	}
	for _, n := range p.readers[tail.out] {
		if n.group != nil || n.Def().Kind != op.ElementWise || !slices.Equal(n.Out.Shape, tail.Out.Shape) || !slices.Equal(n.out.layout, tail.out.layout) {
			continue
		}
		if n.is(op.Dequantize) { // its readers make floats of the integers that are stored anyway
			continue
		}
		if p.yields(n, map[*value]bool{tail.out: true}) {
			continue
		}
		if isReady(grp, []*node{n}, tail.order) {
			return []*node{n}
		}
	}
	return nil
}

// storesMore reports whether the schedules of a kernel store results on the way tile by tile: those of products, of
// windows and of element-wise operators do.
func storesMore(anchor *node) bool {
	return anchor.Def().Tiled || anchor.Def().Kind == op.ElementWise
}

// canTake reports whether a group may compute a region after its last result. Once it stores more than one, what it
// reads must be computed before the first of them: else two kernels could wait for one another. And all results must
// have the same layout, to be stored by one nest of loops.
func canTake(g *group, region []*node) bool {
	if len(g.stored) == 0 {
		return true
	}
	if slices.ContainsFunc(region, func(n *node) bool { return !slices.Equal(n.out.layout, g.stored[0].layout) }) {
		return false
	}
	return isReady(g, region, g.begin())
}

// isReady reports whether everything that the nodes read is computed in the group, or by a node of lower order.
func isReady(g *group, nodes []*node, order int) bool {
	if len(g.stored) > 0 {
		order = g.begin()
	}
	for _, n := range nodes {
		for _, v := range n.in {
			if v == nil || v.producer == nil || v.producer.order < order {
				continue
			}
			if !slices.Contains(g.nodes, v.producer) && !slices.Contains(nodes, v.producer) {
				return false
			}
		}
	}
	return true
}
