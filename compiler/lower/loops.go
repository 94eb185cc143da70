package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// generate emits the leaves from position pos inward.
func (l *lowerer) generate(n *nest, pos int) ir.Block {
	if l.count++; l.count > ir.MaxStatements {
		fail("the schedule makes more than %d loops and statements", ir.MaxStatements)
	}
	if pos == len(n.g.Leaves) {
		return l.innermost(n)
	}
	it := n.g.Leaves[pos]
	if it.Reduce && (n.init || n.decay) {
		return l.generate(n, pos+1)
	}
	if it.Reduce && !n.started {
		return l.startReduction(n, pos)
	}
	n.checkOrder(it)
	extent := n.extent(it)
	if it.Kind == schedule.Vectorized && extent > 1 && pos != len(n.g.Leaves)-1 {
		fail("stage %d: vectorized iterator %d is not innermost", n.g.ID, it.ID)
	}
	if sp := it.Parent; sp != nil && it == sp.Outer && sp.Tail == schedule.Peel && !atOnce(it) && n.partial(sp) {
		return l.peel(n, pos, sp)
	}
	return l.loop(n, pos, extent)
}

// atOnce reports whether the iterations of a leaf run concurrently, so that the last one cannot be peeled.
func atOnce(it *schedule.Iter) bool {
	return it.Kind == schedule.Parallel || onGPU(it)
}

// startReduction writes the initial values of everything computed inside this leaf, then continues with the leaf.
func (l *lowerer) startReduction(n *nest, pos int) ir.Block {
	first := n.clone()
	first.init = true
	block := l.generate(first, pos)
	n = n.clone()
	n.started = true
	return append(block, l.generate(n, pos)...)
}

func (l *lowerer) loop(n *nest, pos int, extent int64) ir.Block {
	it := n.g.Leaves[pos]
	if extent > 1 && onGPU(it) {
		outer := l.around
		defer func() { l.around = outer }()
		l.around.enter(n.g, it)
	}
	if it.Kind == schedule.Block {
		return l.grid(n, pos, extent)
	}
	if extent == 1 {
		n = n.clone()
		n.values[it] = expr.I(0)
		return l.enter(n, pos)
	}
	v := &expr.Var{Name: fmt.Sprintf("x%d_%d", n.g.ID, it.ID), Extent: extent}
	n = n.clone()
	n.values[it] = v
	loop := &ir.For{Var: v, Extent: extent, Kind: kinds[it.Kind], Format: it.Format}
	if it.Reduce {
		loop.Range, n.steps = n.steps, nil // those of the outermost loop
	}
	if it.Kind == schedule.Trimmed && loop.Range == nil {
		loop.Range = l.trimmed(n, it)
	}
	needed := l.bounded(n, it, loop)
	body := l.enter(n, pos)
	if needed != nil {
		body = ir.Block{&ir.If{Cond: needed, Then: body}}
	}
	return ir.Block{loop.With(body)}
}

// peel emits the loop over full tiles, then the partial tile.
func (l *lowerer) peel(n *nest, pos int, sp *schedule.Split) ir.Block {
	full := n.extent(sp.Parent) / sp.Factor
	most := n.clone()
	most.sizes[sp] = sp.Factor
	block := l.loop(most, pos, full)
	last := n.clone()
	last.sizes[sp] = n.extent(sp.Parent) % sp.Factor
	last.values[sp.Outer] = expr.I(full)
	tail := l.enter(last, pos)
	if needed := l.needed(last, sp.Outer); needed != nil {
		tail = ir.Block{&ir.If{Cond: needed, Then: tail}}
	}
	return append(block, tail...)
}

// enter continues inside the leaf at pos, whose value is now known: it decides partial tiles that depend on it,
// then computes the stages attached here.
func (l *lowerer) enter(n *nest, pos int) ir.Block {
	for _, it := range n.g.Iters {
		sp := it.Split
		if sp == nil || !n.partial(sp) {
			continue
		}
		outer, ok := n.value(sp.Outer)
		if !ok {
			continue
		}
		if n.sizes[sp] == 0 && sp.Tail == schedule.Fit {
			return l.fit(n, pos, sp, outer)
		}
		if n.sizes[sp] == 0 && sp.Tail == schedule.Peel {
			return l.branch(n, pos, sp, outer)
		}
		if _, settled := n.bases[sp]; sp.Tail == schedule.Shift && !settled {
			return l.shift(n, pos, sp, outer)
		}
	}
	if n.init || n.decay {
		return l.generate(n, pos+1)
	}
	return l.attached(n, pos)
}

// branch emits both versions of the loops inside a split whose outer part is known but has no loop of its own. In the
// version for full tiles the outer part gets its own name, whose smaller extent allows simpler index arithmetic.
func (l *lowerer) branch(n *nest, pos int, sp *schedule.Split, outer expr.Expr) ir.Block {
	full := n.extent(sp.Parent) / sp.Factor
	most, last := n.clone(), n.clone()
	most.sizes[sp], last.sizes[sp] = sp.Factor, n.extent(sp.Parent)%sp.Factor
	v := &expr.Var{Name: "f", Extent: full}
	most.values[sp.Outer] = v
	last.values[sp.Outer] = expr.I(full)
	if onThreads(sp.Outer) {
		last.values[sp.Outer] = outer // the number is known, but not as that of a thread
	}
	then := append(ir.Block{&ir.Let{Var: v, Value: expr.Simplify(outer)}}, l.enter(most, pos)...)
	tail := l.enter(last, pos)
	return ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, outer, expr.I(full))), Then: then, Else: tail}}
}

// fit emits a version of the loops inside a split for each size of a tile, the largest first. As in branch, the outer
// part gets a name in each version, whose extent ensures that the tile is within the region.
func (l *lowerer) fit(n *nest, pos int, sp *schedule.Split, outer expr.Expr) (block ir.Block) {
	extent, step := n.extent(sp.Parent), schedule.FitStep(sp.Factor)
	end := cmp.Or(l.bound(n, sp.Parent), expr.I(extent))
	sizes := []int64{extent % sp.Factor, min(sp.Factor, extent)}
	for size := step; size < sizes[1]; size += step {
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	last := int64(0)
	for _, size := range slices.Compact(sizes) {
		if size == 0 {
			continue
		}
		version, at := n.clone(), expr.Expr(expr.I(0))
		var then ir.Block
		if most := (extent - size) / sp.Factor; most > 0 {
			v := &expr.Var{Name: "f", Extent: most + 1}
			at, then = v, ir.Block{&ir.Let{Var: v, Value: expr.Simplify(outer)}}
		}
		version.sizes[sp], version.values[sp.Outer] = size, at
		then = append(then, l.enter(version, pos)...)
		if block == nil { // tiles that an execution needs have an iteration
			block, last = then, size
			continue
		}
		more := expr.Bin(expr.Lt, expr.AddE(expr.MulE(outer, expr.I(sp.Factor)), expr.I(last)), end)
		block, last = ir.Block{&ir.If{Cond: expr.Simplify(more), Then: then, Else: block}}, size
	}
	return block
}

// onThreads reports whether an iterator's value derives from a thread number.
func onThreads(it *schedule.Iter) bool {
	switch {
	case it.Fuse != nil:
		return onThreads(it.Fuse.Into)
	case it.Split != nil:
		return onThreads(it.Split.Outer) || onThreads(it.Split.Inner)
	}
	return it.Kind == schedule.Thread
}

func (l *lowerer) shift(n *nest, pos int, sp *schedule.Split, outer expr.Expr) ir.Block {
	room := n.extent(sp.Parent) - sp.Factor
	v := &expr.Var{Name: "b", Extent: room + 1}
	n = n.clone()
	n.bases[sp] = v
	rest := l.enter(n, pos)
	value := expr.Simplify(expr.MinE(expr.MulE(outer, expr.I(sp.Factor)), expr.I(room)))
	return append(ir.Block{&ir.Let{Var: v, Value: value}}, rest...)
}

// attached computes the stages attached at the leaf at pos, then continues inward.
func (l *lowerer) attached(n *nest, pos int) ir.Block {
	var block ir.Block
	for _, p := range l.order {
		if p.Inlined || p.Consumer != n.g || p.At != n.g.Leaves[pos] {
			continue
		}
		region := l.region(p, n)
		var mins []expr.Expr
		var extents []int64
		if p.KeptInside() {
			mins, extents = ends(region)
		} else {
			var lets ir.Block
			mins, extents, lets = l.fitted(region, p.Tensor.Shape)
			block = append(block, lets...)
			l.bindings[p.Tensor] = l.scratch(p, mins, extents)
			l.bindings[p.Tensor].exact = l.exact
			block = append(append(block, &ir.Alloc{Buffer: l.bindings[p.Tensor].buffer}), l.keep(p, mins, extents)...)
		}
		part := newNest(p, mins, extents)
		part.needed = region
		if p.At.StreamKRounds > 0 {
			return append(block, l.sumOrPart(part, func() ir.Block { return l.generate(n, pos+1) })...)
		}
		block = append(block, l.filled(part)...)
	}
	if n.g.Decay != nil && n.g.Leaves[pos].Axis == len(n.g.Axes) {
		decay := n.clone()
		decay.decay = true
		block = append(block, l.generate(decay, pos+1)...)
	}
	return append(block, l.generate(n, pos+1)...)
}

// checkOrder rejects a loop over an iterator whose extent is not known yet: it derives from the inner part of a
// split that does not divide the extent, and an inner loop decides whether its tile is partial.
func (n *nest) checkOrder(it *schedule.Iter) {
	if f := it.Fused; f != nil {
		n.checkOrder(f.A)
		n.checkOrder(f.B)
		return
	}
	sp := it.Parent
	if sp == nil {
		return
	}
	if it == sp.Inner && n.partial(sp) {
		if _, shifted := n.bases[sp]; n.sizes[sp] == 0 && !shifted {
			fail("stage %d: the split of iterator %d by %d does not divide, so its inner part cannot be outside its outer part or fused with it", n.g.ID, sp.Parent.ID, sp.Factor)
		}
	}
	n.checkOrder(sp.Parent)
}

// trimmed returns the range of iterations over a reduction axis that read more than padding for any element
// computed by the inner loops; nil for all.
func (l *lowerer) trimmed(n *nest, it *schedule.Iter) *ir.Range {
	extent := n.g.AxisVar(it.Axis).Extent
	first, end, kept := expr.I(0), expr.I(extent), 1.0
	for _, w := range it.Windows {
		lo, hi := expr.I(0), expr.I(0)
		values, atOnce := int64(1), int64(1)
		if w.Along >= 0 {
			at := n.span(n.g.Iters[w.Along])
			values, atOnce = n.g.Axes[w.Along].Extent, at.extent
			from := expr.AddE(n.mins[w.Along], at.min)
			lo, hi = expr.MulE(expr.I(w.Stride), from), expr.MulE(expr.I(w.Stride), expr.AddE(from, expr.I(at.extent-1)))
		}
		steps := func(e expr.Expr) expr.Expr {
			return expr.Bin(expr.FloorDiv, expr.AddE(e, expr.I(w.Step-1)), expr.I(w.Step))
		}
		first = expr.MaxE(first, steps(expr.SubE(expr.I(w.First), hi)))
		end = expr.MinE(end, steps(expr.SubE(expr.I(w.End), lo)))
		kept = min(kept, w.Kept(values, atOnce, extent))
	}
	first, end = expr.Simplify(first), expr.Simplify(end)
	if expr.Same(first, expr.I(0)) && expr.Same(end, expr.I(extent)) {
		return nil
	}
	return &ir.Range{First: first, End: end, Every: 1, Mean: kept * float64(extent)}
}
