package rewrite

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// maxNodes limits the nodes of a kernel, so that its expressions stay small.
const maxNodes = 40

// Partition divides the graph into kernels, in an order in which they can run. Each reduction absorbs the elementwise
// operators that follow it, starting with the largest reductions; the remaining operators form kernels of their own. A
// result with further readers is stored, and the operators after it are still computed in the same kernel. A value
// that only a product reads is computed in the product's kernel. Views outside kernels become aliases.
func Partition(g *graph.Graph) []*graph.Kernel {
	g.Number()
	p := &partitioner{Graph: g, readers: g.Users()}
	var anchors, rest []*graph.Node
	for _, n := range g.Nodes {
		switch {
		case n.Def().Kind == op.Reduction:
			anchors = append(anchors, n)
		case !n.IsView():
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(anchors, func(a, b *graph.Node) int { return cmp.Compare(op.Work(b.Node), op.Work(a.Node)) })
	var kernels []*graph.Kernel
	for _, n := range append(anchors, rest...) {
		if n.Kernel == nil {
			kernels = append(kernels, p.grow(n))
		}
	}
	kernels = p.absorbDequantised(p.absorbPrologues(kernels))
	slices.SortFunc(kernels, func(a, b *graph.Kernel) int { return cmp.Compare(a.Begin(), b.Begin()) })
	return kernels
}

type partitioner struct {
	*graph.Graph
	readers map[*graph.Value][]*graph.Node
}

// grow returns the kernel of an anchor.
func (p *partitioner) grow(anchor *graph.Node) *graph.Kernel {
	kernel := &graph.Kernel{Anchor: anchor, Nodes: []*graph.Node{anchor}}
	anchor.Kernel = kernel
	for len(kernel.Nodes) < maxNodes {
		region := p.region(kernel.Tail().Result)
		if region != nil && !canTake(kernel, region) {
			break
		}
		if region == nil {
			if region = p.also(kernel); region == nil {
				break
			}
			kernel.Stored = append(kernel.Stored, kernel.Tail().Result)
		}
		for _, n := range region {
			n.Kernel = kernel
		}
		kernel.Nodes = append(kernel.Nodes, region...)
	}
	for kernel.Tail().IsView() { // a view at the end costs nothing as an alias
		kernel.Tail().Kernel = nil
		kernel.Nodes = kernel.Nodes[:len(kernel.Nodes)-1]
	}
	kernel.Stored = append(kernel.Stored, kernel.Tail().Result)
	return kernel
}

// region returns the smallest set of nodes after v that computes one result from v and other values, and that
// dominates all uses of v: the nodes up to the immediate post-dominator of v. All are elementwise on v's shape; or the
// region is a single transposition, or a reshape of axes with extent one. It returns nil if there is no such set.
func (p *partitioner) region(v *graph.Value) []*graph.Node {
	if p.IsOutput(v) {
		return nil
	}
	if users := p.readers[v]; len(users) == 1 && users[0].Kernel == nil && (users[0].Def().Kind == op.Permute || op.OnlyUnits(users[0].Node)) {
		return users
	}
	var region []*graph.Node
	inside := map[*graph.Value]bool{v: true}
	for len(region) < maxNodes {
		n := p.next(region, inside)
		if n == nil || n.Kernel != nil || n.Def().Kind != op.ElementWise || !slices.Equal(n.Out.Shape, v.Shape) {
			return nil
		}
		if p.chooses(n) || p.yields(n, inside) {
			return nil
		}
		region = append(region, n)
		if p.closed(region, inside) {
			return region
		}
		if p.IsOutput(n.Result) {
			return nil
		}
		inside[n.Result] = true
	}
	return nil
}

// chooses reports whether n selects, by one computed bool, between values computed for it alone. Such a node gets
// its own kernel, so that an execution can skip the branch not taken.
func (p *partitioner) chooses(n *graph.Node) bool {
	return n.IsChoice() && slices.ContainsFunc(n.Operands[1:], func(v *graph.Value) bool {
		return v.Producer != nil && len(p.readers[v]) == 1 && !p.IsOutput(v)
	})
}

// yields reports whether n should join the kernel of its first operand instead. Where two reductions meet, as at
// the end of a residual block, the first one is the block's own in every model seen. Blocks with and without a
// projection then share their tasks.
func (p *partitioner) yields(n *graph.Node, inside map[*graph.Value]bool) bool {
	first := n.Operands[0]
	if inside[first] || first.Producer == nil || len(p.readers[first]) != 1 || p.IsOutput(first) {
		return false
	}
	return first.Producer.Def().Kind == op.Reduction && slices.Equal(first.Shape, n.Out.Shape)
}

// next returns the earliest reader of the values inside that is not in the region yet.
func (p *partitioner) next(region []*graph.Node, inside map[*graph.Value]bool) *graph.Node {
	var best *graph.Node
	for v := range inside {
		for _, n := range p.readers[v] {
			if !slices.Contains(region, n) && (best == nil || n.Order < best.Order) {
				best = n
			}
		}
	}
	return best
}

// closed reports whether nothing outside the region reads the values inside it.
func (p *partitioner) closed(region []*graph.Node, inside map[*graph.Value]bool) bool {
	for v := range inside {
		for _, n := range p.readers[v] {
			if !slices.Contains(region, n) {
				return false
			}
		}
	}
	return true
}
