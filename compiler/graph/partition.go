package graph

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// maxGroup bounds the nodes of one kernel, so that its expressions stay small.
const maxGroup = 40

// partition cuts the graph into kernels: each reduction takes the element-wise operators that follow it, those with
// most work first; what is left forms kernels of its own. A result that has other readers than the operators that
// follow it is stored, and they are computed in the same kernel. What only a product reads is computed in the
// product's kernel. Views that no kernel takes become aliases. The result is in an order in which the kernels can run.
func partition(g *graph) []*group {
	g.number()
	p := &partitioner{graph: g, readers: g.users()}
	var anchors, rest []*node
	for _, n := range g.nodes {
		switch {
		case n.Def().Kind == op.Reduction:
			anchors = append(anchors, n)
		case !n.isView():
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(anchors, func(a, b *node) int { return cmp.Compare(op.Work(b.Node), op.Work(a.Node)) })
	var groups []*group
	for _, n := range append(anchors, rest...) {
		if n.group == nil {
			groups = append(groups, p.grow(n))
		}
	}
	groups = p.absorbDequantised(p.absorbPrologues(groups))
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.begin(), b.begin()) })
	return groups
}

type partitioner struct {
	*graph
	readers map[*value][]*node
}

// grow makes the group of an anchor.
func (p *partitioner) grow(anchor *node) *group {
	grp := &group{anchor: anchor, nodes: []*node{anchor}}
	anchor.group = grp
	for len(grp.nodes) < maxGroup {
		region := p.region(grp.tail().out)
		if region != nil && !canTake(grp, region) {
			break
		}
		if region == nil {
			if region = p.also(grp); region == nil {
				break
			}
			grp.stored = append(grp.stored, grp.tail().out)
		}
		for _, n := range region {
			n.group = grp
		}
		grp.nodes = append(grp.nodes, region...)
	}
	for grp.tail().isView() { // a view at the end costs nothing as an alias
		grp.tail().group = nil
		grp.nodes = grp.nodes[:len(grp.nodes)-1]
	}
	grp.stored = append(grp.stored, grp.tail().out)
	return grp
}

// region is the smallest set of nodes after v that computes one result from it and other values, and through which all
// that is computed from v goes: the nodes between v and its immediate post-dominator. All are element-wise on v's
// shape; or it is a single transposition, or a reshape by axes of extent one. nil when there is none.
func (p *partitioner) region(v *value) []*node {
	if p.isOutput(v) {
		return nil
	}
	if users := p.readers[v]; len(users) == 1 && users[0].group == nil && (users[0].Def().Kind == op.Permute || op.OnlyUnits(users[0].Node)) {
		return users
	}
	var region []*node
	inside := map[*value]bool{v: true}
	for len(region) < maxGroup {
		n := p.next(region, inside)
		if n == nil || n.group != nil || n.Def().Kind != op.ElementWise || !slices.Equal(n.Out.Shape, v.Shape) {
			return nil
		}
		if p.yields(n, inside) {
			return nil
		}
		region = append(region, n)
		if p.closed(region, inside) {
			return region
		}
		if p.isOutput(n.out) {
			return nil
		}
		inside[n.out] = true
	}
	return nil
}

// yields reports whether n is better left to the kernel of its first operand: where two reductions meet, as at the end
// of a residual block, the first is the block's own in every model seen, and blocks with and without a projection
// beside them then share their tasks.
func (p *partitioner) yields(n *node, inside map[*value]bool) bool {
	first := n.in[0]
	if inside[first] || first.producer == nil || len(p.readers[first]) != 1 || p.isOutput(first) {
		return false
	}
	return first.producer.Def().Kind == op.Reduction && slices.Equal(first.Shape, n.Out.Shape)
}

// next is the earliest reader of the values inside that is not in the region yet.
func (p *partitioner) next(region []*node, inside map[*value]bool) *node {
	var best *node
	for v := range inside {
		for _, n := range p.readers[v] {
			if !slices.Contains(region, n) && (best == nil || n.order < best.order) {
				best = n
			}
		}
	}
	return best
}

// closed reports whether nothing outside the region reads the values inside it.
func (p *partitioner) closed(region []*node, inside map[*value]bool) bool {
	for v := range inside {
		for _, n := range p.readers[v] {
			if !slices.Contains(region, n) {
				return false
			}
		}
	}
	return true
}
