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

// tensorizeLaunch holds the buffers in registers and in shared memory.
type tensorizeLaunch struct{ in ir.Allocated }

func launchOf(b ir.Block) tensorizeLaunch {
	l := tensorizeLaunch{ir.Allocated{}}
	ir.Visit(b, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok {
			l.in[a.Buffer.Tensor] = a.Buffer
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
	for _, m := range w.matches(n) {
		p := &tensorizeProduct{warp: w, match: m, terms: n, a: tensorizeOperand{matched: &m.operands[1]}, b: tensorizeOperand{matched: &m.operands[2]}}
		switch {
		case m.operands[0].moved || !p.divide():
		case !n.Format.Warpgroup():
			return p, true
		case len(p.a.loops) <= 1 && len(p.b.loops) == 0 && (groupProduct{p}).aligned():
			return groupProduct{p}, true
		}
	}
	return nil, false
}

// matches returns the ways in which a loop over matrices computes an instruction.
func (w *warp) matches(n *ir.For) []*match {
	switch {
	case n.Format.Tile():
		return nil // CPU tiles
	case n.Format.Warpgroup():
		return w.groupMatches(n)
	}
	return tensorizeFactors(n, func(a, b array.DType) *ir.Instruction { return nvidia.Multiply(n.Format, a, b) }, w.in, w.loop)
}

// tensorizeProduct is a loop over matrices that warp instructions compute.
type tensorizeProduct struct {
	*warp
	*match
	terms *ir.For
	a, b  tensorizeOperand
	// steps is the loop over the terms.
	steps *matchedLoop
}

// tensorizeOperand is a factor with the loops that move it.
type tensorizeOperand struct {
	*matched
	loops []*ir.For
}

// divide assigns the loops that remain to the operand that each moves.
func (p *tensorizeProduct) divide() bool {
	for _, l := range p.loops[0] {
		switch {
		case l.Kind == ir.Matrices:
			p.steps = l
		case len(l.inside) > 0 && l.rest != nil:
			return false
		case len(l.inside) > 0: // it is one of the instruction
		case expr.Uses(p.a.load, l.Var):
			p.a.loops = append(p.a.loops, l.For)
		default:
			p.b.loops = append(p.b.loops, l.For)
		}
	}
	return true
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
	a := ir.Flat("a", array.Uint32, p.parts()*registersA*count(p.a.loops))
	b := ir.Flat("b", array.Uint32, p.parts()*registersB*count(p.b.loops))
	regsA, regsB := &ir.Buffer{Tensor: a, Space: ir.Private}, &ir.Buffer{Tensor: b, Space: ir.Private}
	body := ir.Block{&ir.Alloc{Buffer: regsA}, &ir.Alloc{Buffer: regsB}}
	body = append(body, p.fetch(p.a, regsA, registersA)...)
	body = append(body, p.fetch(p.b, regsB, registersB)...)
	body = append(body, p.multiply(regsA, regsB)...)
	if step := p.steps.rest; step.Extent > 1 {
		return ir.Block{&ir.For{Var: step, Extent: step.Extent, Kind: ir.Unrolled, Body: body}}
	}
	return body
}

// fragment returns the values with which an operand's index addresses elements of the current thread: those of a row
// of the instruction, or of a column.
func (p *tensorizeProduct) fragment(registers int64) map[*expr.Var]expr.Expr {
	v := warpVarsOf(p.match)
	t, at := expr.Expr(p.loop.Var), p.step()
	if registers == registersA {
		at[v.row] = remainder(quotient(t, 4), matrixRows)
	} else {
		t = p.turned
		at[v.quad], at[v.next] = remainder(t, 4), p.side
	}
	at[p.threads.rest], at[v.group] = quotient(t, warpThreads), p.quad
	return at
}

// step returns the value of the loop over the terms.
func (p *tensorizeProduct) step() map[*expr.Var]expr.Expr {
	if p.steps.rest.Extent == 1 {
		return map[*expr.Var]expr.Expr{p.steps.rest: expr.I(0)}
	}
	return map[*expr.Var]expr.Expr{}
}

// warpVars names the loops of nvidia.Multiply.
type warpVars struct{ row, quad, below, next, half, group, term *expr.Var }

func warpVarsOf(m *match) warpVars {
	v := m.vars
	return warpVars{v[0], v[1], v[2], v[3], v[4], v[5], v[6]}
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

// fetch loads an operand's registers: as whole matrices if the layout allows, or element by element.
func (p *tensorizeProduct) fetch(o tensorizeOperand, to *ir.Buffer, registers int64) ir.Block {
	if loads := p.loadMatrices(o, to, registers); loads != nil {
		return loads
	}
	packed, mine := p.terms.Format.Packed(), p.fragment(registers)
	var stores ir.Block
	for part := range p.parts() {
		for r := range registers {
			elements := make([]expr.Expr, packed)
			for e := range packed {
				elements[e] = o.tensor.At(linear(o.at(expr.I(r*packed+e)), mine).Expr())
			}
			index := expr.AddE(expr.MulE(iteration(o.loops), expr.I(p.parts()*registers)), expr.I(part*registers+r))
			stores = append(stores, &ir.Store{Buffer: to, Index: index, Value: nvidia.Pack(p.terms.Format, part == 1, elements)})
		}
	}
	return around(o.loops, stores)
}

// multiply returns the multiply instructions.
func (p *tensorizeProduct) multiply(a, b *ir.Buffer) ir.Block {
	one := func(partA, partB int64) ir.Stmt {
		return ir.Exec(p.Instruction, p.operands[0].arg(),
			ir.At(a, expr.AddE(expr.MulE(iteration(p.a.loops), expr.I(p.parts()*registersA)), expr.I(partA*registersA))),
			ir.At(b, expr.AddE(expr.MulE(iteration(p.b.loops), expr.I(p.parts()*registersB)), expr.I(partB*registersB))))
	}
	all := ir.Block{one(0, 0)}
	if p.parts() == 2 {
		all = ir.Block{one(1, 0), one(0, 1), one(0, 0)} // the smallest first
	}
	return around(append(slices.Clone(p.a.loops), p.b.loops...), all)
}
