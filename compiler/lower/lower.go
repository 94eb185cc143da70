package lower

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxIterations limits the iteration space of one stage, so that no product of extents overflows.
const maxIterations = 1 << 40

// maxWork limits the expression nodes that lowering creates and the loads it examines to infer regions.
const maxWork = 1 << 21

// kinds maps the annotations of the schedule to kinds of loops.
var kinds = map[schedule.Kind]ir.Kind{
	schedule.Serial: ir.Serial, schedule.Parallel: ir.Parallel, schedule.Vectorized: ir.Vector, schedule.Unrolled: ir.Unrolled,
	schedule.Dotted: ir.Dot, schedule.Block: ir.Blocks, schedule.Thread: ir.Threads,
	schedule.Matrices: ir.Matrices, schedule.Lanewise: ir.Lanewise, schedule.Trimmed: ir.Serial,
}

// spaces maps the scopes of stages to memory spaces.
var spaces = map[schedule.Scope]ir.Space{
	schedule.ByPlace: ir.Scratch, schedule.Shared: ir.Shared, schedule.Registers: ir.Private,
}

type lowerer struct {
	s        *schedule.Schedule
	bindings map[*expr.Tensor]*binding
	// outputs holds the place of an output that is computed inside another stage's nest, while bindings holds the
	// part being computed.
	outputs map[*expr.Tensor]*binding
	// order lists the stages, producers before consumers.
	order []*schedule.Stage
	count int
	// consumers caches the consumers of stages.
	consumers map[*schedule.Stage][]*schedule.Stage
	// partial is the stage with divided sums in the current tiles; nil if none exists.
	partial *partialSums
	// around records the surrounding GPU loops.
	around levels
	// counts holds the extents that limits depend on, as variables that are known before all loops.
	counts map[*expr.Tensor]*expr.Var
	// whole holds the stages that are computed beyond limits, too.
	whole map[*schedule.Stage]bool
	// exact is set if tiles may exceed tensors, so that the stages computed for them must, too.
	exact bool
	// work counts towards maxWork.
	work int
}

func (l *lowerer) spend(work int) {
	if l.work += work; l.work > maxWork {
		fail("the schedule takes more than %d steps to lower", maxWork)
	}
}

// failure is the panic value that ends a lowering; Schedule returns its error.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf("lower: "+format, args...)}) }

func checkIterations(s *schedule.Schedule) {
	for _, g := range s.Stages {
		n := int64(1)
		for k := range len(g.Axes) + len(g.Reduce) {
			extent := g.AxisVar(k).Extent
			if extent > maxIterations/n {
				fail("stage %d has more than %d iterations", g.ID, int64(maxIterations))
			}
			n *= extent
		}
	}
}

// binding is the place of a tensor's elements: the part that starts at mins, in a buffer of the given extents.
type binding struct {
	buffer  *ir.Buffer
	mins    []expr.Expr
	extents []int64
	pack    []schedule.PackDim
	// strides is set for an argument that is part of a larger tensor.
	strides []int64
	// exact is set for a part that may exceed the tensor.
	exact bool
}

// Schedule converts a schedule to loops. It returns an error if the schedule as a whole is not legal.
func Schedule(s *schedule.Schedule) (made *ir.Func, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	if s.Own != nil {
		fail("%s has no loops to lower: it runs on processors only", s.Own.Kernel.Label())
	}
	l := &lowerer{s: s, bindings: map[*expr.Tensor]*binding{}, outputs: map[*expr.Tensor]*binding{}, counts: map[*expr.Tensor]*expr.Var{}, consumers: map[*schedule.Stage][]*schedule.Stage{}, order: topological(s), whole: indexing(s), exact: guards(s)}
	checkIterations(s)
	checkDecays(s)
	f := &ir.Func{Workload: s.Workload}
	l.bindArgs(f)
	f.Body = l.readLimits()
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
		zero := slices.Repeat([]expr.Expr{expr.I(0)}, len(g.Axes))
		f.Body = append(f.Body, l.keep(g, zero, g.Tensor.Shape)...)
		n := newNest(g, zero, g.Tensor.Shape)
		l.hold(n)
		f.Body = append(f.Body, l.generate(n, 0)...)
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
				visit(p.Kept) // its loop computes all of p
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

// within reports whether a stage equals another, or is computed inside its nest.
func within(g, nest *schedule.Stage) bool {
	for ; g != nil; g = g.Consumer {
		if g == nest {
			return true
		}
	}
	return false
}

func whole(t *expr.Tensor, b *ir.Buffer) *binding {
	return &binding{buffer: b, mins: slices.Repeat([]expr.Expr{expr.I(0)}, len(t.Shape)), extents: t.Shape}
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
			buffer.Access = g.Access
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
	pack := NewPack(constant, t, l.s.Transforms[constant], dims)
	pack.Buffer.Index, pack.Buffer.AheadBytes = len(f.Prepared), l.s.Prefetches[constant]
	f.Prepared = append(f.Prepared, pack)
	l.bindings[t] = whole(t, pack.Buffer)
	l.bindings[t].pack = dims
}

// scratch returns a new buffer for a part of a stage; nil mins are zeros.
func (l *lowerer) scratch(g *schedule.Stage, mins []expr.Expr, extents []int64) *binding {
	stored := slices.Clone(extents)
	if g.Gap > 0 && len(extents) > 0 {
		stored[len(stored)-1] += g.Gap
	}
	b := whole(g.Tensor, &ir.Buffer{Tensor: ir.Flat(fmt.Sprintf("s%d", g.ID), g.Tensor.DType, array.Elements(stored)), Space: spaces[g.Scope], Access: g.Access})
	b.extents = stored
	if g.Combiner == expr.None {
		b.buffer.Bits = expr.BitsOf(g.Body)
	}
	if g.Swizzled {
		b.buffer.Row, b.buffer.Rows = swizzled(stored, g.Tensor.DType.Bytes())
	}
	if mins != nil {
		b.mins = mins
	}
	return b
}

// swizzled returns the elements of a row and the number of rows of a buffer with the given extents; 0 if it cannot
// be swizzled.
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

func (l *lowerer) innermost(n *nest) ir.Block {
	g := n.g
	at, vars := l.position(n)
	target := l.bindings[g.Tensor]
	if g.KeptInside() {
		at = target.relative(n.absolute(at))
	}
	index := target.flatten(at)
	if n.store != nil {
		return n.guarded(ir.Block{n.store(index)})
	}
	store := &ir.Store{Buffer: target.buffer, Index: index}
	if n.init {
		store.Value = g.Combiner.Identity(g.Tensor.DType)
		return n.guarded(ir.Block{store})
	}
	body := expr.Substitute(g.Body, vars)
	if n.decay {
		body = expr.Substitute(g.Decay, vars)
	}
	body = l.inside(n, l.masked(n, body, vars), vars)
	l.spend(expr.Size(body))
	value := l.lowerExpr(body)
	kept := &expr.Load{Tensor: target.buffer.Tensor, Index: []expr.Expr{index}}
	switch {
	case n.decay:
		store.Value = expr.MulE(kept, value)
		return n.guarded(ir.Block{store})
	case g.Combiner == expr.Sum: // the step of a sum may be a multiply-add
		value = expr.FusedBin(expr.Add, kept, value)
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

// absolute converts a position within the nest's region to one within the tensor.
func (n *nest) absolute(at []expr.Expr) []expr.Expr {
	whole := make([]expr.Expr, len(at))
	for k, x := range at {
		whole[k] = expr.AddE(n.mins[k], x)
	}
	return whole
}

// position returns the stage's spatial position within its region, and the absolute value of every axis.
func (l *lowerer) position(n *nest) (at []expr.Expr, vars map[*expr.Var]expr.Expr) {
	vars = map[*expr.Var]expr.Expr{}
	for k := range n.extents {
		if k >= len(n.g.Axes) && (n.init || n.decay && k > len(n.g.Axes)) {
			break
		}
		v := n.axis(k)
		if k < len(n.g.Axes) {
			at = append(at, v)
		}
		vars[n.g.AxisVar(k)] = expr.AddE(n.mins[k], v)
	}
	return at, vars
}

// lowerExpr replaces loads of tensors by loads of buffers.
func (l *lowerer) lowerExpr(e expr.Expr) expr.Expr {
	var missing *expr.Tensor
	lowered := expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		load, ok := x.(*expr.Load)
		if !ok {
			return x
		}
		if held := l.counted(x); held != x {
			return held
		}
		b := l.bindings[load.Tensor]
		if b == nil {
			missing = load.Tensor
			return x
		}
		return &expr.Load{Tensor: b.buffer.Tensor, Index: []expr.Expr{b.flatten(b.relative(load.Index))}}
	})
	if missing != nil {
		fail("tensor %s is used before it is computed", missing.Name)
	}
	return expr.Simplify(lowered)
}

// relative returns the position of an element within the binding's region.
func (b *binding) relative(index []expr.Expr) []expr.Expr {
	at := make([]expr.Expr, len(index))
	for k, i := range index {
		at[k] = expr.SubE(i, b.mins[k])
	}
	return at
}

// flatten returns the flat index of a position within the binding's region.
func (b *binding) flatten(at []expr.Expr) expr.Expr {
	extents := b.extents
	if b.pack != nil {
		at, extents = PackIndex(b.pack, at, b.extents)
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
