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
	g.GroupLoops()
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
	if users := p.readers[v]; len(users) == 1 && users[0].Kernel == nil && isBeside(users[0], v.Producer) && (users[0].Def().Kind == op.Permute || op.OnlyUnits(users[0].Node)) {
		return users
	}
	var region []*graph.Node
	inside := map[*graph.Value]bool{v: true}
	for len(region) < maxNodes {
		n := p.next(region, inside)
		if n == nil || n.Kernel != nil || n.Def().Kind != op.ElementWise || !n.Out.Shape.Equal(v.Shape) || !isBeside(n, v.Producer) {
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

// isBeside reports whether a node is computed as often as another one.
func isBeside(n, other *graph.Node) bool {
	return n.Control == nil && slices.Equal(n.Loops, other.Loops)
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
	return first.Producer.Def().Kind == op.Reduction && first.Shape.Equal(n.Out.Shape)
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

// absorbDequantised moves kernels that only dequantise into the elementwise operator that is their only reader,
// such as the addition at the end of a residual block.
func (p *partitioner) absorbDequantised(kernels []*graph.Kernel) []*graph.Kernel {
	var absorbed []*graph.Kernel
	for _, kernel := range kernels {
		for k := 0; k < len(kernel.Nodes); k++ {
			n := kernel.Nodes[k]
			if n == kernel.Anchor || n.Def().Kind != op.ElementWise {
				continue
			}
			for _, v := range n.Operands {
				f := p.prologue(v, kernel)
				if f == nil || f == kernel || len(f.Nodes) != 1 || !f.Anchor.Is(op.Dequantize) || slices.Contains(absorbed, f) {
					continue
				}
				kernel.Nodes = slices.Insert(kernel.Nodes, k, f.Anchor)
				f.Anchor.Kernel = kernel
				absorbed = append(absorbed, f)
				k++
			}
		}
	}
	return slices.DeleteFunc(kernels, func(k *graph.Kernel) bool { return slices.Contains(absorbed, k) })
}

// absorbPrologues makes an elementwise kernel the prologue of the product that is its only reader, such as the
// normalisation and activation after the concatenations of a dense block, or the scaling of squeeze-and-excitation.
// The product computes it block by block, and the result never goes through memory.
func (p *partitioner) absorbPrologues(kernels []*graph.Kernel) []*graph.Kernel {
	var absorbed []*graph.Kernel
	for _, kernel := range kernels {
		for _, v := range kernel.Anchor.Operands {
			f := p.prologue(v, kernel)
			if f == nil || slices.Contains(absorbed, f) || !takesPrologue(kernel.Anchor, f) {
				continue
			}
			kernel.Nodes = slices.Concat(f.Nodes, kernel.Nodes)
			kernel.Prologue = append(kernel.Prologue, v)
			absorbed = append(absorbed, f)
		}
	}
	return slices.DeleteFunc(kernels, func(k *graph.Kernel) bool { return slices.Contains(absorbed, k) })
}

// takesPrologue reports whether a node is a product that reads each element of an operand for many results at one
// position: a 1x1 convolution, or a product with known weights. Nodes that read each element once, such as a global
// pooling, or only for its own row, such as a softmax, accept a dequantisation.
func takesPrologue(n *graph.Node, prologue *graph.Kernel) bool {
	p, ok := n.Product()
	takesBytes := n.Def().Once || n.Def().Rowwise
	return ok && p.Pointwise || takesBytes && len(prologue.Nodes) == 1 && prologue.Anchor.Is(op.Dequantize)
}

// prologue returns the elementwise kernel that computes v for the kernel's anchor alone, or nil.
func (p *partitioner) prologue(v *graph.Value, kernel *graph.Kernel) *graph.Kernel {
	if v == nil || v.Producer == nil || v.Within != nil || p.IsOutput(v) || len(p.readers[v]) != 1 {
		return nil
	}
	f := v.Producer.Kernel
	if f == nil || !isBeside(f.Anchor, kernel.Anchor) || f.Tail().Result != v || len(f.Stored) != 1 || len(f.Nodes)+len(kernel.Nodes) > maxNodes {
		return nil
	}
	if slices.ContainsFunc(f.Nodes, func(n *graph.Node) bool { return n.Def().Kind != op.ElementWise || n.ToFloat8() }) {
		return nil
	}
	return f
}

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
		if n.Kernel != nil || n.Def().Kind != op.ElementWise || !n.Out.Shape.Equal(tail.Out.Shape) || !slices.Equal(n.Result.Layout, tail.Result.Layout) {
			continue
		}
		if n.Is(op.Dequantize) || !isBeside(n, tail) { // its readers convert the stored integers themselves
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
		for _, v := range slices.Concat(n.Operands, n.Counts()) {
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
