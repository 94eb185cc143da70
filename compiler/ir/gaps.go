package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Gaps is an index into rows of elements, or of vectors, that have gaps behind them: number n of those without gaps
// lies at n/Length*Row + n%Length*Place + Const.
type Gaps struct {
	Number                    expr.Expr
	Length, Row, Place, Const int64
}

// GapsOf takes such an index apart. Higher numbers lie behind lower ones.
func GapsOf(index expr.Expr) (g Gaps, ok bool) {
	at := expr.Linearize(index)
	if len(at.Terms) != 2 {
		return g, false
	}
	row, place := at.Terms[0], at.Terms[1]
	if row.Coef < place.Coef {
		row, place = place, row
	}
	r, okRow := row.Atom.(*expr.Binary)
	p, okPlace := place.Atom.(*expr.Binary)
	if !okRow || !okPlace || r.Op != expr.FloorDiv || p.Op != expr.FloorMod || !expr.Same(r.A, p.A) || !expr.Same(r.B, p.B) {
		return g, false
	}
	n, known := r.B.(*expr.Int)
	if !known || place.Coef < 1 || row.Coef < place.Coef*n.Value {
		return g, false
	}
	return Gaps{Number: r.A, Length: n.Value, Row: row.Coef, Place: place.Coef, Const: at.Const}, true
}

// Bounds are the smallest and the largest index; ok is false when they are not known.
func (g Gaps) Bounds() (lo, hi int64, ok bool) {
	lo, hi, ok = expr.Linearize(g.Number).Bounds()
	return g.at(lo), g.at(hi), ok && lo >= 0
}

func (g Gaps) at(number int64) int64 {
	return number/g.Length*g.Row + number%g.Length*g.Place + g.Const
}
