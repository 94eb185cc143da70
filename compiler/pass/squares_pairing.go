package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// pairing selects the dot products of a run of statements that are merged.
type pairing struct {
	sums *expr.Tensor
	has  HasSquares
	// places maps the first element of each vector of sums to its place. first lists the leading vectors of pairs
	// in the order of discovery.
	places map[int64]*squaresPlace
	first  []int64
	// becomes maps a dot product to its replacement; the first one of a pair is dropped.
	becomes map[*ir.Call]ir.Stmt
	// failed is set if a vector would need two partners.
	failed bool
}

// squaresPlace is a vector of sums: its buffer, and its partner throughout, or alone.
type squaresPlace struct {
	buffer  *ir.Buffer
	partner int64
	turned  bool
	alone   bool
}

// factor is a dot product whose sums may form a row of squares.
type factor struct {
	product   *ir.Call
	at, terms int64
	// rows is the register of a row; columns is that of four columns, which start at an element of a tensor.
	rows, columns *ir.Buffer
	tensor        *expr.Tensor
	begin         expr.Linear
	turned        bool
}

// block pairs the dot products between statements that might change their operands.
func (p *pairing) block(b ir.Block) {
	defined := map[*expr.Tensor]*ir.Define{}
	var open []factor
	for _, st := range b {
		switch n := st.(type) {
		case *ir.Define:
			defined[n.Buffer.Tensor] = n
			continue
		case *ir.Call:
			if d, _, ok := machine.DotOf(n); ok {
				if n.Args[0].Tensor == p.sums && d.Lanes == machine.SquareLanes {
					open = p.add(open, n, defined)
				}
				continue
			}
		}
		if p.isolated(st) {
			continue
		}
		switch n := st.(type) {
		case *ir.For:
			p.block(n.Body)
		case *ir.If:
			p.block(n.Then)
			p.block(n.Else)
		}
		p.leave(open)
		open = nil
	}
	p.leave(open)
}

// isolated reports whether a statement neither accumulates dot products nor writes memory.
func (p *pairing) isolated(st ir.Stmt) bool {
	isolated := true
	ir.Visit(ir.Block{st}, func(x ir.Stmt) {
		_, c, adds := machine.DotOf(x)
		b := ir.Written(x)
		isolated = isolated && !(adds && c.Args[0].Tensor == p.sums) && (b == nil || b.Space == ir.Register)
	})
	return isolated
}

// add pairs a dot product with an open one, or leaves it open.
func (p *pairing) add(open []factor, n *ir.Call, defined map[*expr.Tensor]*ir.Define) []factor {
	f, ok := p.factorOf(n, defined)
	if !ok {
		p.leave([]factor{f})
		return open
	}
	k := slices.IndexFunc(open, func(o factor) bool { return p.fit(o, f) })
	if k < 0 {
		return append(open, f)
	}
	p.pair(open[k], f)
	return slices.Delete(open, k, k+1)
}

// factorOf returns a dot product as a row of squares; ok is false if it has another form.
func (p *pairing) factorOf(n *ir.Call, defined map[*expr.Tensor]*ir.Define) (f factor, ok bool) {
	d, _, _ := machine.DotOf(n)
	a, b := n.Args[1].Buffer, n.Args[2].Buffer
	f = factor{product: n, at: first(n), terms: d.Terms, rows: a, columns: b}
	rows, columns := defined[a.Tensor], defined[b.Tensor]
	if rows == nil || columns == nil {
		return f, false
	}
	if _, spread := rows.Value.(*ir.Spread); !spread {
		f.rows, f.columns, rows, columns = b, a, columns, rows
	}
	row, spread := rows.Value.(*ir.Spread)
	l, loaded := columns.Value.(*expr.Load)
	if !spread || !loaded {
		return f, false
	}
	f.tensor, f.begin = l.Tensor, expr.Linearize(l.Index[0]).Plus(expr.Linearize(columns.Lane), -1)
	f.turned, ok = p.has(row.Tensor.DType, l.Tensor.DType, d.Terms)
	return f, ok
}

// fit reports whether two dot products share columns and neither has another partner.
func (p *pairing) fit(a, b factor) bool {
	apart := a.begin.Plus(b.begin, -1)
	if a.tensor != b.tensor || apart.Const != 0 || len(apart.Terms) > 0 || a.at == b.at || a.turned != b.turned || a.terms != b.terms {
		return false
	}
	for _, f := range [2]factor{a, b} {
		if known := p.places[f.at]; known != nil && !known.alone && known.partner != a.at+b.at-f.at {
			return false
		}
	}
	return true
}

// pair merges two dot products at the position of the later one.
func (p *pairing) pair(earlier, later factor) {
	one, other := p.places[earlier.at], p.places[later.at]
	switch {
	case one == nil && other == nil:
		p.places[earlier.at] = &squaresPlace{buffer: earlier.product.Args[0].Buffer, partner: later.at, turned: earlier.turned}
		p.places[later.at] = &squaresPlace{buffer: earlier.product.Args[0].Buffer, partner: earlier.at, turned: earlier.turned}
		p.first = append(p.first, earlier.at)
	case one == nil || other == nil || one.alone || other.alone || one.turned != earlier.turned:
		p.failed = true
		return
	}
	a, b := earlier, later
	if !slices.Contains(p.first, a.at) {
		a, b = b, a
	}
	p.becomes[earlier.product] = nil
	product := machine.SquareProduct(a.rows.Tensor.DType, later.columns.Tensor.DType, a.turned)
	sums := later.product.Args[0].Buffer
	p.becomes[later.product] = ir.Exec(product, ir.At(sums, expr.I(a.at)), ir.At(sums, expr.I(b.at)), ir.All(a.rows), ir.All(b.rows), ir.All(later.columns))
}

// leave keeps dot products unpaired.
func (p *pairing) leave(list []factor) {
	for _, f := range list {
		known := p.places[f.at]
		p.failed = p.failed || known != nil && !known.alone
		p.places[f.at] = &squaresPlace{buffer: f.product.Args[0].Buffer, alone: true}
	}
}

// rearranged converts all pairs of rows to squares, or back.
func (p *pairing) rearranged(back bool) (out ir.Block) {
	for _, at := range p.first {
		one := p.places[at]
		squares := machine.Squares(one.buffer.Tensor.DType, one.turned, back)
		out = append(out, ir.Exec(squares, ir.At(one.buffer, expr.I(at)), ir.At(one.buffer, expr.I(one.partner))))
	}
	return out
}

// replaced returns a block with the replacements of its dot products.
func (p *pairing) replaced(b ir.Block) (out ir.Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			if n.Kind != ir.Vector {
				st = n.With(p.replaced(n.Body))
			}
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: p.replaced(n.Then), Else: p.replaced(n.Else)}
		case *ir.Call:
			if by, ok := p.becomes[n]; ok {
				st = by
			}
		}
		if st != nil {
			out = append(out, st)
		}
	}
	return out
}
