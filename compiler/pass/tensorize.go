package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Tensorize replaces loops over matrices by a GPU's matrix instructions. The results of a warp must be distributed
// over its threads as schedule.Tensorize describes; the instruction layout then only determines which thread
// fetches which operand elements. Loops that do not match become serial and compute the same.
func Tensorize(f *ir.Func) *ir.Func {
	return ir.MapLaunches(f, func(b ir.Block) ir.Block { return ir.MapEach(b, launchOf(b).threads) })
}

// tensorizeLaunch holds the tensors in registers and the buffers in shared memory.
type tensorizeLaunch struct {
	private map[*expr.Tensor]bool
	shared  map[*expr.Tensor]*ir.Buffer
}

func launchOf(b ir.Block) tensorizeLaunch {
	l := tensorizeLaunch{map[*expr.Tensor]bool{}, map[*expr.Tensor]*ir.Buffer{}}
	ir.Visit(b, func(st ir.Stmt) {
		a, ok := st.(*ir.Alloc)
		switch {
		case ok && a.Buffer.Space == ir.Private:
			l.private[a.Buffer.Tensor] = true
		case ok && a.Buffer.Space == ir.Shared:
			l.shared[a.Buffer.Tensor] = a.Buffer
		}
	})
	return l
}

// threads rewrites a loop over threads, and defines the names that instruction layouts need. It returns nil for any
// other loop.
func (l tensorizeLaunch) threads(n *ir.For) ir.Stmt {
	if n.Kind != ir.Threads {
		return nil
	}
	w := newWarp(l, n)
	body := w.block(n.Body, true)
	return n.With(append(w.names(body), body...))
}

// warp describes the threads of a loop in groups of 32.
type warp struct {
	tensorizeLaunch
	loop *ir.For
	// quad is a thread's number among the four that share a row of sums. turned is the thread whose columns the
	// current thread fetches, and side selects one of the two.
	quad, turned, side *expr.Var
	// number is the number of the warp. octet is a group of eight threads that address the rows of a matrix; row is
	// the one that the current thread addresses.
	number, octet, row *expr.Var
}

func newWarp(l tensorizeLaunch, n *ir.For) *warp {
	return &warp{
		tensorizeLaunch: l, loop: n,
		quad:   &expr.Var{Name: "quad", Extent: 4},
		turned: &expr.Var{Name: "turned", Extent: n.Extent},
		side:   &expr.Var{Name: "side", Extent: 2},
		number: &expr.Var{Name: "warp", Extent: (n.Extent + warpThreads - 1) / warpThreads},
		octet:  &expr.Var{Name: "octet", Extent: warpThreads / matrixRows},
		row:    &expr.Var{Name: "row", Extent: matrixRows},
	}
}

// names defines those of the warp's variables that a block uses.
func (w *warp) names(b ir.Block) (names ir.Block) {
	t := w.loop.Var
	lane := remainder(t, warpThreads)
	first := expr.MulE(quotient(t, warpThreads), expr.I(warpThreads))
	for _, n := range []*ir.Let{
		{Var: w.quad, Value: remainder(t, 4)},
		{Var: w.turned, Value: expr.AddE(first, quotient(lane, 8))},
		{Var: w.side, Value: remainder(quotient(t, 4), 2)},
		{Var: w.number, Value: quotient(t, warpThreads)},
		{Var: w.octet, Value: quotient(lane, matrixRows)},
		{Var: w.row, Value: remainder(t, matrixRows)},
	} {
		used := false
		ir.VisitExprs(b, func(e expr.Expr) { used = used || expr.Uses(e, n.Var) })
		if used {
			names = append(names, n)
		}
	}
	return names
}

// block rewrites statements that a warp executes together, or those that it need not.
func (w *warp) block(b ir.Block, together bool) ir.Block {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			if n.Kind != ir.Matrices {
				st = n.With(w.block(n.Body, together))
				break
			}
			if p, ok := w.product(n); ok && together {
				out = append(out, p.run()...)
				continue
			}
			plain := n.With(n.Body)
			plain.Kind = ir.Serial
			st = plain
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: w.block(n.Then, false), Else: w.block(n.Else, false)}
		}
		out = append(out, st)
	}
	return out
}

// runner is a loop over matrices that instructions can compute.
type runner interface{ run() ir.Block }

// product matches a loop over matrices.
func (w *warp) product(n *ir.For) (runner, bool) {
	switch {
	case n.Format.Tile():
		return nil, false // CPU tiles
	case n.Format.Warpgroup():
		return w.matchGroup(n)
	}
	return w.match(n)
}

// tensorizeProduct is a loop over matrices that warp instructions compute.
type tensorizeProduct struct {
	*warp
	terms *ir.For
	store *ir.Store
	a, b  tensorizeOperand
	// rowElements is the distance between a thread's two rows of sums; half is the loop over them, and pair the
	// loop over its two columns.
	rowElements int64
	half, pair  *expr.Var
}

// tensorizeOperand is a factor with the loops that move it.
type tensorizeOperand struct {
	load  *expr.Load
	loops []*ir.For
}

// match matches a loop over a warp's matrices.
func (w *warp) match(n *ir.For) (*tensorizeProduct, bool) {
	if w.loop.Extent%warpThreads != 0 || n.Extent%n.Format.Terms() != 0 {
		return nil, false
	}
	for _, p := range w.products(n) {
		if p.fits() {
			return p, true
		}
	}
	return nil, false
}

// products returns the possible matches of a loop over matrices: either factor may supply the rows.
func (w *warp) products(n *ir.For) (ways []*tensorizeProduct) {
	loops, store := ir.StepNest(n.Body)
	if store == nil || store.Buffer.Space != ir.Private {
		return nil
	}
	op, term, ok := store.Step()
	if !ok || op != expr.Add || expr.Uses(store.Index, n.Var) {
		return nil
	}
	x, y, ok := schedule.Factors(term)
	if !ok || w.private[x.Tensor] || w.private[y.Tensor] {
		return nil
	}
	for _, f := range [][2]*expr.Load{{x, y}, {y, x}} {
		p := &tensorizeProduct{warp: w, terms: n, store: store, a: tensorizeOperand{load: f[0]}, b: tensorizeOperand{load: f[1]}}
		if p.divide(loops) {
			ways = append(ways, p)
		}
	}
	return ways
}

// divide assigns each loop to the operand that it moves, and selects the innermost suitable ones for a thread's two
// rows and two columns.
func (p *tensorizeProduct) divide(loops []*ir.For) bool {
	sums := expr.Linearize(p.store.Index)
	for _, n := range slices.Backward(loops) {
		ofA, ofB := expr.Uses(p.a.load, n.Var), expr.Uses(p.b.load, n.Var)
		coef, linear := sums.Coef(n.Var)
		switch {
		case ofA == ofB || !linear || coef < 1:
			return false
		case ofA && p.half == nil && n.Extent == 2:
			p.half, p.rowElements = n.Var, coef
		case ofA:
			p.a.loops = append(p.a.loops, n)
		case p.pair == nil && n.Extent == 2 && coef == 1:
			p.pair = n.Var
		default:
			p.b.loops = append(p.b.loops, n)
		}
	}
	slices.Reverse(p.a.loops)
	slices.Reverse(p.b.loops)
	return p.half != nil && p.pair != nil && !expr.Uses(p.store.Index, p.loop.Var)
}

// fits reports whether threads with the same rows read the same elements of one operand, and threads with the same
// columns the same elements of the other.
func (p *tensorizeProduct) fits() bool {
	alike := func(e expr.Expr, from func(t int64) int64) bool {
		for t := range p.loop.Extent {
			if !expr.Same(p.at(e, t), p.at(e, from(t))) {
				return false
			}
		}
		return true
	}
	return alike(p.a.load.Index[0], func(t int64) int64 { return t - t%4 }) &&
		alike(p.b.load.Index[0], func(t int64) int64 { return t/warpThreads*warpThreads + t%4 })
}

// at returns an index for the given thread.
func (p *tensorizeProduct) at(e expr.Expr, t int64) expr.Expr {
	return expr.Linearize(expr.Substitute(e, map[*expr.Var]expr.Expr{p.loop.Var: expr.I(t)})).Expr()
}

// parts returns the number of pieces that each element is split into.
func (p *tensorizeProduct) parts() int64 {
	if p.terms.Format == schedule.TF32Compensated {
		return 2
	}
	return 1
}

// Registers of a thread for each operand.
const (
	registersA = 4
	registersB = 2
)

// run returns the loop over the terms with its instructions.
func (p *tensorizeProduct) run() ir.Block {
	steps := p.terms.Extent / p.terms.Format.Terms()
	step := &expr.Var{Name: p.terms.Var.Name, Extent: steps}
	first := expr.MulE(step, expr.I(p.terms.Format.Terms()))
	if steps == 1 {
		first = expr.I(0)
	}
	a := ir.Flat("a", array.Uint32, p.parts()*registersA*p.a.count())
	b := ir.Flat("b", array.Uint32, p.parts()*registersB*p.b.count())
	regsA, regsB := &ir.Buffer{Tensor: a, Space: ir.Private}, &ir.Buffer{Tensor: b, Space: ir.Private}
	body := ir.Block{&ir.Alloc{Buffer: regsA}, &ir.Alloc{Buffer: regsB}}
	body = append(body, p.fetch(p.a, regsA, registersA, first)...)
	body = append(body, p.fetch(p.b, regsB, registersB, first)...)
	body = append(body, p.multiply(regsA, regsB)...)
	if steps == 1 {
		return body
	}
	return ir.Block{&ir.For{Var: step, Extent: steps, Kind: ir.Unrolled, Body: body}}
}

// count returns the number of the operand's matrices in a warp.
func (o tensorizeOperand) count() int64 {
	n := int64(1)
	for _, l := range o.loops {
		n *= l.Extent
	}
	return n
}

// place returns the number of a matrix within its warp.
func (o tensorizeOperand) place() expr.Expr {
	at := expr.I(0)
	for _, l := range o.loops {
		at = expr.AddE(expr.MulE(at, expr.I(l.Extent)), l.Var)
	}
	return at
}

// around wraps a block in copies of the operand's loops.
func around(loops []*ir.For, b ir.Block) ir.Block {
	fresh := map[*expr.Var]expr.Expr{}
	for _, l := range loops {
		fresh[l.Var] = &expr.Var{Name: l.Var.Name, Extent: l.Extent}
	}
	b = ir.Rewrite(b, func(e expr.Expr) expr.Expr { return expr.Substitute(e, fresh) })
	for _, l := range slices.Backward(loops) {
		b = ir.Block{&ir.For{Var: fresh[l.Var].(*expr.Var), Extent: l.Extent, Kind: ir.Unrolled, Body: b}}
	}
	return b
}

// fetch loads an operand's registers for the terms starting at first: as whole matrices if the layout allows, or
// element by element.
func (p *tensorizeProduct) fetch(o tensorizeOperand, to *ir.Buffer, registers int64, first expr.Expr) ir.Block {
	if loads := p.loadMatrices(o, to, registers, first); loads != nil {
		return loads
	}
	packed := p.terms.Format.Packed()
	var stores ir.Block
	for part := range p.parts() {
		for r := range registers {
			elements := make([]expr.Expr, packed)
			for e := range packed {
				// The second register of a row or column holds the terms of the second half.
				half := r
				if registers == registersA {
					half = r / 2
				}
				term := expr.AddE(expr.AddE(first, expr.MulE(p.quad, expr.I(packed))), expr.I(half*4*packed+e))
				at := map[*expr.Var]expr.Expr{p.terms.Var: term}
				if registers == registersA {
					at[p.half] = expr.I(r % 2)
				} else {
					at[p.pair], at[p.loop.Var] = p.side, p.turned
				}
				index := expr.Linearize(expr.Simplify(expr.Substitute(o.load.Index[0], at))).Expr()
				elements[e] = o.load.Tensor.At(index)
			}
			index := expr.AddE(expr.MulE(o.place(), expr.I(p.parts()*registers)), expr.I(part*registers+r))
			stores = append(stores, &ir.Store{Buffer: to, Index: index, Value: nvidia.Pack(p.terms.Format, part == 1, elements)})
		}
	}
	return around(o.loops, stores)
}

// multiply returns the multiply instructions.
func (p *tensorizeProduct) multiply(a, b *ir.Buffer) ir.Block {
	sum := expr.Substitute(p.store.Index, map[*expr.Var]expr.Expr{p.half: expr.I(0), p.pair: expr.I(0)})
	one := func(partA, partB int64) ir.Stmt {
		sums := ir.At(p.store.Buffer, expr.Linearize(sum).Expr())
		sums.Stride = p.rowElements
		return ir.Exec(nvidia.Multiply(p.terms.Format, p.a.load.DType(), p.b.load.DType()), sums,
			ir.At(a, expr.AddE(expr.MulE(p.a.place(), expr.I(p.parts()*registersA)), expr.I(partA*registersA))),
			ir.At(b, expr.AddE(expr.MulE(p.b.place(), expr.I(p.parts()*registersB)), expr.I(partB*registersB))))
	}
	all := ir.Block{one(0, 0)}
	if p.parts() == 2 {
		all = ir.Block{one(1, 0), one(0, 1), one(0, 0)} // the smallest first
	}
	return around(append(slices.Clone(p.a.loops), p.b.loops...), all)
}
