package lower

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/packing"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxIterations bounds the iteration space of one stage, so that no product of extents overflows.
const maxIterations = 1 << 40

// maxWork bounds the expression nodes that lowering makes and the loads it looks at when it infers regions.
const maxWork = 1 << 21

// kinds are those of loops by how the schedule annotates them.
var kinds = map[schedule.Kind]ir.Kind{
	schedule.Serial: ir.Serial, schedule.Parallel: ir.Parallel, schedule.Vectorized: ir.Vector, schedule.Unrolled: ir.Unrolled,
	schedule.Dotted: ir.Dot, schedule.Block: ir.Blocks, schedule.Thread: ir.Threads,
	schedule.Matrices: ir.Matrices, schedule.Lanewise: ir.Lanewise,
}

// spaces are the memory that stages ask for.
var spaces = map[schedule.Scope]ir.Space{
	schedule.ByPlace: ir.Scratch, schedule.Shared: ir.Shared, schedule.Registers: ir.Private,
}

type lowerer struct {
	s        *schedule.Schedule
	bindings map[*expr.Tensor]*binding
	// outputs has where an output lies that is computed inside another stage's nest, while bindings has the part of it
	// that is being computed.
	outputs map[*expr.Tensor]*binding
	// order has the stages, producers before consumers.
	order []*schedule.Stage
	count int
	// consumers of the stages asked for so far.
	consumers map[*schedule.Stage][]*schedule.Stage
	// exact is set where tiles may go beyond tensors: then what is computed for them does, too.
	exact bool
	// work counts towards maxWork.
	work int
}

func (l *lowerer) spend(work int) error {
	if l.work += work; l.work > maxWork {
		return fmt.Errorf("lower: the schedule takes more than %d steps to lower", maxWork)
	}
	return nil
}

func checkIterations(s *schedule.Schedule) error {
	for _, g := range s.Stages {
		n := int64(1)
		for k := range len(g.Axes) + len(g.Reduce) {
			extent := g.AxisVar(k).Extent
			if extent > maxIterations/n {
				return fmt.Errorf("lower: stage %d has more than %d iterations", g.ID, int64(maxIterations))
			}
			n *= extent
		}
	}
	return nil
}

// binding says where a tensor's elements are: the part of it that begins at mins, in a buffer of the given extents.
type binding struct {
	buffer  *ir.Buffer
	mins    []expr.Expr
	extents []int64
	pack    []schedule.PackDim
	// strides are set for an argument that is part of a larger tensor.
	strides []int64
	// exact is set for a part that may go beyond the tensor.
	exact bool
}

// Schedule turns a schedule into loops. It fails when the schedule is not legal as a whole; the error says why.
func Schedule(s *schedule.Schedule) (*ir.Func, error) {
	l := &lowerer{s: s, bindings: map[*expr.Tensor]*binding{}, outputs: map[*expr.Tensor]*binding{}, consumers: map[*schedule.Stage][]*schedule.Stage{}, order: topological(s), exact: guards(s)}
	if err := checkIterations(s); err != nil {
		return nil, err
	}
	if err := checkDecays(s); err != nil {
		return nil, err
	}
	f := &ir.Func{Workload: s.Workload}
	l.bindArgs(f)
	for _, g := range l.order {
		if g.IsOutput && g.Consumer != nil {
			l.outputs[g.Tensor] = l.bindings[g.Tensor]
		}
	}
	for _, g := range l.order {
		if g.Inlined || g.Consumer != nil {
			continue
		}
		if !g.IsOutput {
			b := l.scratch(g, nil, g.Tensor.Shape)
			f.Body = append(f.Body, &ir.Alloc{Buffer: b.buffer})
			l.bindings[g.Tensor] = b
		}
		zero := make([]expr.Expr, len(g.Axes))
		for k := range zero {
			zero[k] = expr.I(0)
		}
		f.Body = append(f.Body, l.keep(g, zero, g.Tensor.Shape)...)
		body, err := l.generate(newNest(g, zero, g.Tensor.Shape), 0)
		if err != nil {
			return nil, err
		}
		f.Body = append(f.Body, body...)
	}
	return f, nil
}

func topological(s *schedule.Schedule) []*schedule.Stage {
	var order []*schedule.Stage
	seen := map[*schedule.Stage]bool{}
	var visit func(g *schedule.Stage)
	visit = func(g *schedule.Stage) {
		if g == nil || seen[g] {
			return
		}
		seen[g] = true
		for _, load := range g.Loads() {
			p := s.Producer(load.Tensor)
			if p != nil && p.KeptInside() && !within(g, p.Kept) {
				visit(p.Kept) // which computes all of it
			}
			visit(p)
		}
		order = append(order, g)
	}
	for _, g := range s.Stages {
		visit(g)
	}
	return order
}

// within reports whether a stage is another, or is computed inside its nest.
func within(g, nest *schedule.Stage) bool {
	for ; g != nil; g = g.Consumer {
		if g == nest {
			return true
		}
	}
	return false
}

func whole(t *expr.Tensor, b *ir.Buffer) *binding {
	mins := make([]expr.Expr, len(t.Shape))
	for k := range mins {
		mins[k] = expr.I(0)
	}
	return &binding{buffer: b, mins: mins, extents: t.Shape}
}

func (l *lowerer) bindArgs(f *ir.Func) {
	w := l.s.Workload
	for k, t := range w.Args() {
		c := k - len(w.Inputs)
		if isConstant := c >= 0 && c < len(w.Constants); isConstant && (l.s.Packs[c] != nil || l.s.Transforms[c] != nil) {
			l.bindPrepared(f, c)
			f.Args = append(f.Args, nil)
			continue
		}
		buffer := &ir.Buffer{Tensor: ir.Flat(fmt.Sprintf("a%d", k), t.DType, t.SpanElements()), Space: ir.Argument, Index: k}
		if g := l.s.Producer(t); g != nil {
			buffer.Streamed = g.Streamed
		}
		f.Args = append(f.Args, buffer)
		b := whole(t, buffer)
		b.strides = t.Strides
		l.bindings[t] = b
	}
}

// bindPrepared replaces a constant by its transform, packed.
func (l *lowerer) bindPrepared(f *ir.Func, constant int) {
	t, dims := l.s.Workload.Constants[constant], l.s.Packs[constant]
	if tr := l.s.Transforms[constant]; tr != nil {
		t = tr.Tensor
	}
	if dims == nil {
		for d := range t.Shape {
			dims = append(dims, schedule.PackDim{Dim: d})
		}
	}
	pack := packing.New(constant, t, l.s.Transforms[constant], dims)
	pack.Buffer.Index, pack.Buffer.AheadBytes = len(f.Prepared), l.s.Prefetches[constant]
	f.Prepared = append(f.Prepared, pack)
	l.bindings[t] = whole(t, pack.Buffer)
	l.bindings[t].pack = dims
}

// scratch is a new buffer for a part of a stage; nil mins are zeros.
func (l *lowerer) scratch(g *schedule.Stage, mins []expr.Expr, extents []int64) *binding {
	stored := extents
	if g.StorageAlign > 0 && len(extents) > 0 {
		stored = slices.Clone(extents)
		stored[len(stored)-1] += g.StorageAlign
	}
	b := whole(g.Tensor, &ir.Buffer{Tensor: ir.Flat(fmt.Sprintf("s%d", g.ID), g.Tensor.DType, array.Elements(stored)), Space: spaces[g.Scope]})
	b.buffer.AheadBytes, b.buffer.Steps, b.extents = g.FetchBytes, g.Steps, stored
	if g.Swizzled {
		b.buffer.Row, b.buffer.Rows = swizzled(stored, g.Tensor.DType.Bytes())
	}
	if mins != nil {
		b.mins = mins
	}
	return b
}

// swizzled are the elements of a row and the rows of a buffer of so many elements in each dimension; 0 where it has
// none that can be swizzled.
func swizzled(extents []int64, bytes int64) (row, rows int64) {
	if len(extents) < 2 {
		return 0, 0
	}
	row = extents[len(extents)-1]
	rows = array.Elements(extents[:len(extents)-1])
	if width := row * bytes; width != 32 && width != 64 && width%128 != 0 || rows%8 != 0 {
		return 0, 0
	}
	return row, rows
}

// generate emits the leaves from position pos inward.
func (l *lowerer) generate(n *nest, pos int) (ir.Block, error) {
	if l.count++; l.count > ir.MaxStatements {
		return nil, fmt.Errorf("lower: the schedule makes more than %d loops and statements", ir.MaxStatements)
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
	if err := n.checkOrder(it); err != nil {
		return nil, err
	}
	extent := n.extent(it)
	if it.Kind == schedule.Vectorized && extent > 1 && pos != len(n.g.Leaves)-1 {
		return nil, fmt.Errorf("lower: stage %d: vectorized iterator %d is not innermost", n.g.ID, it.ID)
	}
	if sp := it.Parent; sp != nil && it == sp.Outer && sp.Tail == schedule.Peel && !atOnce(it) && n.partial(sp) {
		return l.peel(n, pos, sp)
	}
	return l.loop(n, pos, extent)
}

// atOnce reports whether the iterations of a leaf run at the same time, so that the last one cannot be a loop of its
// own.
func atOnce(it *schedule.Iter) bool {
	return it.Kind == schedule.Parallel || it.Kind == schedule.Block || it.Kind == schedule.Thread
}

// startReduction writes the initial values of everything computed inside this leaf, then goes on with the leaf.
func (l *lowerer) startReduction(n *nest, pos int) (ir.Block, error) {
	first := n.clone()
	first.init = true
	block, err := l.generate(first, pos)
	if err != nil {
		return nil, err
	}
	n = n.clone()
	n.started = true
	rest, err := l.generate(n, pos)
	return append(block, rest...), err
}

func (l *lowerer) loop(n *nest, pos int, extent int64) (ir.Block, error) {
	it := n.g.Leaves[pos]
	if extent == 1 {
		n = n.clone()
		n.values[it] = expr.I(0)
		return l.enter(n, pos)
	}
	v := &expr.Var{Name: fmt.Sprintf("x%d_%d", n.g.ID, it.ID), Extent: extent}
	n = n.clone()
	n.values[it] = v
	body, err := l.enter(n, pos)
	return ir.Block{&ir.For{Var: v, Extent: extent, Kind: kinds[it.Kind], Format: it.Format, Body: body}}, err
}

// peel emits the full tiles' loop, then the partial tile.
func (l *lowerer) peel(n *nest, pos int, sp *schedule.Split) (ir.Block, error) {
	full := n.extent(sp.Parent) / sp.Factor
	most := n.clone()
	most.tails[sp] = false
	block, err := l.loop(most, pos, full)
	if err != nil {
		return nil, err
	}
	last := n.clone()
	last.tails[sp] = true
	last.values[sp.Outer] = expr.I(full)
	tail, err := l.enter(last, pos)
	return append(block, tail...), err
}

// enter goes on inside the leaf at pos, whose value is now known: it settles partial tiles that this decides, then
// computes the stages attached here.
func (l *lowerer) enter(n *nest, pos int) (ir.Block, error) {
	for _, it := range n.g.Iters {
		sp := it.Split
		if sp == nil || !n.partial(sp) {
			continue
		}
		outer, ok := n.value(sp.Outer)
		if !ok {
			continue
		}
		if _, settled := n.tails[sp]; sp.Tail == schedule.Peel && !settled {
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

// branch emits both versions of the loops inside a split whose outer part is known but is no loop of its own. In the
// version for full tiles the outer part gets a name of its own, whose smaller extent lets index arithmetic be
// simplified.
func (l *lowerer) branch(n *nest, pos int, sp *schedule.Split, outer expr.Expr) (ir.Block, error) {
	full := n.extent(sp.Parent) / sp.Factor
	most, last := n.clone(), n.clone()
	most.tails[sp], last.tails[sp] = false, true
	v := &expr.Var{Name: "f", Extent: full}
	most.values[sp.Outer] = v
	last.values[sp.Outer] = expr.I(full)
	if onThreads(sp.Outer) {
		last.values[sp.Outer] = outer // the number is known, but that it is a thread's would not be
	}
	then, err := l.enter(most, pos)
	if err != nil {
		return nil, err
	}
	then = append(ir.Block{&ir.Let{Var: v, Value: expr.Simplify(outer)}}, then...)
	tail, err := l.enter(last, pos)
	return ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, outer, expr.I(full))), Then: then, Else: tail}}, err
}

// onThreads reports whether an iterator's value comes from the number of a thread.
func onThreads(it *schedule.Iter) bool {
	switch {
	case it.Fuse != nil:
		return onThreads(it.Fuse.Into)
	case it.Split != nil:
		return onThreads(it.Split.Outer) || onThreads(it.Split.Inner)
	}
	return it.Kind == schedule.Thread
}

func (l *lowerer) shift(n *nest, pos int, sp *schedule.Split, outer expr.Expr) (ir.Block, error) {
	room := n.extent(sp.Parent) - sp.Factor
	v := &expr.Var{Name: "b", Extent: room + 1}
	n = n.clone()
	n.bases[sp] = v
	rest, err := l.enter(n, pos)
	value := expr.Simplify(expr.MinE(expr.MulE(outer, expr.I(sp.Factor)), expr.I(room)))
	return append(ir.Block{&ir.Let{Var: v, Value: value}}, rest...), err
}

// attached computes the stages attached at the leaf at pos, then goes on inward.
func (l *lowerer) attached(n *nest, pos int) (ir.Block, error) {
	var block ir.Block
	for _, p := range l.order {
		if p.Inlined || p.Consumer != n.g || p.At != n.g.Leaves[pos] {
			continue
		}
		region, err := l.region(p, n)
		if err != nil {
			return nil, err
		}
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
		body, err := l.generate(newNest(p, mins, extents), 0)
		if err != nil {
			return nil, err
		}
		block = append(block, body...)
	}
	if n.g.Decay != nil && n.g.Leaves[pos].Axis == len(n.g.Axes) {
		decay := n.clone()
		decay.decay = true
		body, err := l.generate(decay, pos+1)
		if err != nil {
			return nil, err
		}
		block = append(block, body...)
	}
	rest, err := l.generate(n, pos+1)
	return append(block, rest...), err
}

// checkOrder refuses a loop over an iterator whose extent is not known yet: it is, or comes from, the inner part of a
// split that does not divide, and whether its tile is the partial one is only decided further inside.
func (n *nest) checkOrder(it *schedule.Iter) error {
	if f := it.Fused; f != nil {
		if err := n.checkOrder(f.A); err != nil {
			return err
		}
		return n.checkOrder(f.B)
	}
	sp := it.Parent
	if sp == nil {
		return nil
	}
	if it == sp.Inner && n.partial(sp) {
		_, peeled := n.tails[sp]
		_, shifted := n.bases[sp]
		if !peeled && !shifted {
			return fmt.Errorf("lower: stage %d: the split of iterator %d by %d does not divide, so its inner part cannot be outside its outer part or fused with it", n.g.ID, sp.Parent.ID, sp.Factor)
		}
	}
	return n.checkOrder(sp.Parent)
}

func (l *lowerer) innermost(n *nest) (ir.Block, error) {
	g := n.g
	at, vars, err := l.position(n)
	if err != nil {
		return nil, err
	}
	target := l.bindings[g.Tensor]
	if g.KeptInside() {
		at = target.relative(n.absolute(at))
	}
	index := target.flatten(at)
	store := &ir.Store{Buffer: target.buffer, Index: index}
	if n.init {
		store.Value = g.Combiner.Identity(g.Tensor.DType)
		return n.guarded(ir.Block{store})
	}
	body := expr.Substitute(g.Body, vars)
	if n.decay {
		body = expr.Substitute(g.Decay, vars)
	}
	body = l.inside(n, body, vars)
	if err := l.spend(expr.Size(body)); err != nil {
		return nil, err
	}
	value, err := l.lowerExpr(body)
	if err != nil {
		return nil, err
	}
	kept := &expr.Load{Tensor: target.buffer.Tensor, Index: []expr.Expr{index}}
	switch {
	case n.decay:
		store.Value = expr.MulE(kept, value)
		return n.guarded(ir.Block{store})
	case g.Combiner != expr.None:
		value = g.Combiner.Combine(kept, value)
	}
	store.Value = value
	block := ir.Block{store}
	if out := l.outputs[g.Tensor]; out != nil {
		stored := ir.Block{&ir.Store{Buffer: out.buffer, Index: out.flatten(n.absolute(at)), Value: kept}}
		if cond := l.beyond(n, vars, nil); cond != nil {
			stored = ir.Block{&ir.If{Cond: cond, Then: stored}}
		}
		block = append(block, stored...)
	}
	return n.guarded(block)
}

// absolute turns a position within the nest's region into one within the tensor.
func (n *nest) absolute(at []expr.Expr) []expr.Expr {
	whole := make([]expr.Expr, len(at))
	for k, x := range at {
		whole[k] = expr.AddE(n.mins[k], x)
	}
	return whole
}

// position is the stage's spatial axes within its region, and every axis' absolute value.
func (l *lowerer) position(n *nest) (at []expr.Expr, vars map[*expr.Var]expr.Expr, err error) {
	vars = map[*expr.Var]expr.Expr{}
	for k := range n.extents {
		if k >= len(n.g.Axes) && (n.init || n.decay && k > len(n.g.Axes)) {
			break
		}
		v, err := n.axis(k)
		if err != nil {
			return nil, nil, err
		}
		if k < len(n.g.Axes) {
			at = append(at, v)
		}
		vars[n.g.AxisVar(k)] = expr.AddE(n.mins[k], v)
	}
	return at, vars, nil
}

// lowerExpr replaces loads of tensors by loads of buffers.
func (l *lowerer) lowerExpr(e expr.Expr) (expr.Expr, error) {
	var missing *expr.Tensor
	lowered := expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		load, ok := x.(*expr.Load)
		if !ok {
			return x
		}
		b := l.bindings[load.Tensor]
		if b == nil {
			missing = load.Tensor
			return x
		}
		return &expr.Load{Tensor: b.buffer.Tensor, Index: []expr.Expr{b.flatten(b.relative(load.Index))}}
	})
	if missing != nil {
		return nil, fmt.Errorf("lower: tensor %s is used before it is computed", missing.Name)
	}
	return expr.Simplify(lowered), nil
}

// relative is the position of an element within the binding's region.
func (b *binding) relative(index []expr.Expr) []expr.Expr {
	at := make([]expr.Expr, len(index))
	for k, i := range index {
		at[k] = expr.SubE(i, b.mins[k])
	}
	return at
}

// flatten is the flat index of an element at a position within the binding's region.
func (b *binding) flatten(at []expr.Expr) expr.Expr {
	extents := b.extents
	if b.pack != nil {
		at, extents = packing.Index(b.pack, at, b.extents)
	}
	index := expr.I(0)
	if b.strides != nil {
		for k, x := range at {
			index = expr.AddE(index, expr.MulE(x, expr.I(b.strides[k])))
		}
		return expr.Linearize(index).Expr()
	}
	for k, x := range at {
		index = expr.AddE(expr.MulE(index, expr.I(extents[k])), x)
	}
	return expr.Linearize(index).Expr()
}
