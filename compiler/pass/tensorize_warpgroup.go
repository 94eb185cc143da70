package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// warpgroupThreads is the number of threads that hold the sums of a warpgroup instruction.
const warpgroupThreads = 128

// groupProduct is a loop over matrices that warpgroup instructions compute.
type groupProduct struct {
	*tensorizeProduct
	columns int64
	// x supplies the rows and y the columns.
	x, y matrix
}

// matrix is a warpgroup operand in shared memory.
type matrix struct {
	*ir.Buffer
	// turned is set if its rows run over terms.
	turned bool
}

// line returns the distance between lines of the operand, and term that between terms.
func (m matrix) line() int64 {
	if m.turned {
		return 1
	}
	return m.Row
}

func (m matrix) term() int64 {
	if m.turned {
		return m.Row
	}
	return 1
}

// matchGroup matches a loop over a warpgroup's matrices.
func (w *warp) matchGroup(n *ir.For) (*groupProduct, bool) {
	if w.loop.Extent%warpgroupThreads != 0 || n.Extent%n.Format.Terms() != 0 {
		return nil, false
	}
	for _, p := range w.products(n) {
		x, okX := p.matrix(p.a.load)
		y, okY := p.matrix(p.b.load)
		g := &groupProduct{tensorizeProduct: p, x: x, y: y}
		if okX && okY && g.fits() {
			return g, true
		}
	}
	return nil, false
}

// matrix returns the shared buffer of an operand. Only 16-bit elements may be transposed.
func (p *tensorizeProduct) matrix(load *expr.Load) (m matrix, ok bool) {
	m.Buffer = p.shared[load.Tensor]
	if m.Buffer == nil || m.Row == 0 {
		return m, false
	}
	coef, linear := expr.Linearize(load.Index[0]).Coef(p.terms.Var)
	m.turned = coef != 1
	return m, linear && coef == m.term() && (!m.turned || load.DType().Bytes() == 2)
}

// fits reports whether a thread's sums match the instruction's layout, and the matrices are aligned for it.
func (g *groupProduct) fits() bool {
	var eights *ir.For
	if len(g.b.loops) != 1 || len(g.a.loops) > 1 {
		return false
	}
	eights = g.b.loops[0]
	g.columns = 8 * eights.Extent
	sums := expr.Linearize(g.store.Index)
	if coef, _ := sums.Coef(eights.Var); coef != 2 || !nvidia.WarpgroupColumns(g.columns) {
		return false
	}
	row := func(t int64) int64 { return t/warpThreads%4*16 + t%warpThreads/4 }
	column := func(t int64) int64 { return t % 4 * 2 }
	return moves(g.a.load, g.half, 8*g.x.line()) && moves(g.b.load, g.pair, g.y.line()) && moves(g.b.load, eights.Var, 8*g.y.line()) &&
		g.spread(g.a.load, g.x, row) && g.spread(g.b.load, g.y, column) &&
		g.begins(g.a, g.x, nvidia.WarpgroupRows) && g.begins(g.b, g.y, g.columns)
}

// moves reports whether each step of a loop moves an operand by the given number of elements.
func moves(load *expr.Load, v *expr.Var, by int64) bool {
	coef, linear := expr.Linearize(load.Index[0]).Coef(v)
	return linear && coef == by
}

// spread reports whether each thread reads the line of its number in the warpgroup, relative to the first thread.
func (g *groupProduct) spread(load *expr.Load, m matrix, line func(t int64) int64) bool {
	for t := range g.loop.Extent {
		first := t / warpgroupThreads * warpgroupThreads
		apart := expr.Linearize(g.at(load.Index[0], t)).Plus(expr.Linearize(g.at(load.Index[0], first)), -1)
		if len(apart.Terms) > 0 || apart.Const != line(t)*m.line() {
			return false
		}
	}
	return true
}

// begins reports whether matrices of the given number of lines start at groups of eight rows, and at whole panels
// if they span several panels or part of one.
func (g *groupProduct) begins(o tensorizeOperand, m matrix, lines int64) bool {
	panel := min(m.Row, 128/m.Tensor.DType.Bytes())
	terms := g.terms.Extent
	rows, row := lines, terms
	if m.turned {
		rows, row = terms, lines
	}
	if m.Rows%rows != 0 || !m.turned && row > panel || m.turned && row%panel != 0 {
		return false
	}
	at := expr.Linearize(g.first(o, expr.I(0)))
	step := 8 * m.Row
	whole := func(coef int64) bool { return coef%step == 0 || m.turned && coef%step%panel == 0 && coef%step < m.Row }
	return whole(at.Const) && !slices.ContainsFunc(at.Terms, func(t expr.Term) bool { return !whole(t.Coef) })
}

// first returns the first element of an operand for the terms starting at term.
func (g *groupProduct) first(o tensorizeOperand, term expr.Expr) expr.Expr {
	t := g.loop.Var
	group := expr.MulE(expr.Bin(expr.FloorDiv, t, expr.I(warpgroupThreads)), expr.I(warpgroupThreads))
	if g.loop.Extent == warpgroupThreads {
		group = expr.I(0)
	}
	at := map[*expr.Var]expr.Expr{g.terms.Var: term, g.half: expr.I(0), g.pair: expr.I(0), t: group}
	for _, l := range g.b.loops {
		at[l.Var] = expr.I(0)
	}
	return expr.Linearize(expr.Simplify(expr.Substitute(o.load.Index[0], at))).Expr()
}

// run returns the group of products, in loops over terms and over the rows of a warpgroup.
func (g *groupProduct) run() ir.Block {
	takes := g.terms.Format.Terms()
	step := &expr.Var{Name: g.terms.Var.Name, Extent: g.terms.Extent / takes}
	zero := map[*expr.Var]expr.Expr{g.half: expr.I(0), g.pair: expr.I(0), g.b.loops[0].Var: expr.I(0)}
	sums := ir.At(g.store.Buffer, expr.Linearize(expr.Substitute(g.store.Index, zero)).Expr())
	sums.Stride = g.rowElements
	first := expr.MulE(step, expr.I(takes))
	multiply := nvidia.MultiplyShared(g.terms.Format, g.columns, nvidia.Factor{Type: g.a.load.DType(), Turned: g.x.turned}, nvidia.Factor{Type: g.b.load.DType(), Turned: g.y.turned})
	one := ir.Exec(multiply, sums, ir.At(g.x.Buffer, g.first(g.a, first)), ir.At(g.y.Buffer, g.first(g.b, first)))
	all := &ir.For{Var: step, Extent: step.Extent, Kind: ir.Unrolled, Body: around(g.a.loops, ir.Block{one})}
	return ir.Block{ir.Exec(nvidia.FenceSums, ir.All(g.store.Buffer)), all, ir.Exec(nvidia.Products.Commit)}
}
