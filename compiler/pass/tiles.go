package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Tiles replaces loops over matrices by a processor's tile instructions, for the element types that has accepts. It
// allocates tiles, loads operands and stores finished sums. Sums stay in tiles from their initialization to the
// last product, and are then stored row by row. Tiles are whole: elements beyond the sums come from arbitrary
// memory and are never read. Loops that do not match stay unchanged and compute the same.
func Tiles(f *ir.Func, has func(array.DType) bool) *ir.Func {
	p := &tilesPlacer{has: has, spare: map[*expr.Tensor]int64{}}
	placed := ir.MapBlocks(f, p.block)
	if len(p.spare) == 0 {
		return placed
	}
	return placed.With(ir.Rebind(placed.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		b := *a.Buffer
		b.Spare = max(b.Spare, p.spare[b.Tensor])
		return &b
	}))
}

// tilesPlacer allocates tiles.
type tilesPlacer struct {
	has func(array.DType) bool
	// spare holds the number of elements that tiles read beyond the end of each buffer.
	spare map[*expr.Tensor]int64
}

// block rewrites the scopes of the buffers that a block allocates.
func (p *tilesPlacer) block(b ir.Block, in ir.Allocated) ir.Block {
	for k, st := range b {
		a, ok := st.(*ir.Alloc)
		if !ok || a.Buffer.Space != ir.Scratch {
			continue
		}
		if scope, ok := p.scope(a.Buffer, b[k+1:], in); ok {
			return append(append(ir.Block{}, b[:k]...), p.block(scope, in)...)
		}
	}
	return b
}

// scope rewrites the allocation of a buffer and what follows, if tile products are all that is added to it.
func (p *tilesPlacer) scope(sums *ir.Buffer, rest ir.Block, in ir.Allocated) (ir.Block, bool) {
	first, last := -1, -1
	for k, st := range rest {
		if adds(st, sums) {
			if last = k; first < 0 {
				first = k
			}
		}
	}
	if first < 1 || !clears(rest[first-1], sums) || ir.Uses(rest[:first-1], sums.Tensor) {
		return nil, false
	}
	s := &scope{tilesPlacer: p, in: in, sums: sums}
	products, ok := s.products(rest[first : last+1])
	if !ok {
		return nil, false
	}
	readers, ok := s.readers(rest[last+1:])
	if !ok {
		return nil, false
	}
	for t, n := range s.spare {
		p.spare[t] = max(p.spare[t], n)
	}
	out := append(ir.Block{}, rest[:first-1]...)
	out = append(append(out, s.begin()...), products...)
	out = append(out, s.end()...)
	return append(out, readers...), true
}

// adds reports whether a statement contains a loop over tile matrices that accumulates into sums.
func adds(st ir.Stmt, sums *ir.Buffer) bool {
	return ir.Any(ir.Block{st}, func(n *ir.For) bool {
		return n.Kind == ir.Matrices && n.Format.Tile() && ir.Uses(n.Body, sums.Tensor)
	})
}

// clears reports whether a statement only zeroes sums.
func clears(st ir.Stmt, sums *ir.Buffer) bool {
	stores := 0
	other := false
	ir.Visit(ir.Block{st}, func(x ir.Stmt) {
		switch n := x.(type) {
		case *ir.For:
		case *ir.Store:
			stores++
			other = other || n.Buffer.Tensor != sums.Tensor || !expr.Same(n.Value, expr.Zero(sums.Tensor.DType))
		default:
			other = true
		}
	})
	return stores > 0 && !other
}

// regrouped applies (x floormod c) + c*(x floordiv c) = x where quotient and remainder were simplified differently.
// A position that was split into image, row and column becomes one value again.
func regrouped(l expr.Linear) expr.Linear {
	for k, t := range l.Terms {
		x, c, ok := division(t.Atom, expr.FloorMod)
		if !ok {
			continue
		}
		other := slices.IndexFunc(l.Terms, func(o expr.Term) bool { return o.Coef == t.Coef*c && isQuotient(o.Atom, x, c) })
		if other >= 0 {
			rest := l.Plus(expr.Linear{Terms: []expr.Term{l.Terms[k], l.Terms[other]}}, -1)
			return regrouped(rest.Plus(expr.Linearize(x), t.Coef))
		}
	}
	return l
}

// isQuotient reports whether an expression is x floordiv c, simplified, or as a quotient of the dividend of x.
func isQuotient(e, x expr.Expr, c int64) bool {
	quotient := func(x expr.Expr, by int64) expr.Expr {
		return expr.Linearize(expr.Simplify(expr.Bin(expr.FloorDiv, x, expr.I(by)))).Expr()
	}
	if expr.Same(e, quotient(x, c)) {
		return true
	}
	y, by, ok := division(e, expr.FloorDiv)
	return ok && by%c == 0 && expr.Same(quotient(y, by/c), expr.Linearize(x).Expr())
}

// division matches a division by a positive constant.
func division(e expr.Expr, op expr.BinaryOp) (x expr.Expr, by int64, ok bool) {
	n, ok := e.(*expr.Binary)
	if !ok || n.Op != op {
		return nil, 0, false
	}
	c, ok := n.B.(*expr.Int)
	if !ok || c.Value < 1 {
		return nil, 0, false
	}
	return n.A, c.Value, true
}
