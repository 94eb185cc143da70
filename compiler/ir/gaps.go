package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Gaps is an index into rows of elements, or of vectors, with gaps between rows: number n lies at n/Length*Row +
// n%Length*Place + Const. Within is the element's position in a vector.
type Gaps struct {
	Number                    expr.Expr
	Within                    expr.Linear
	Length, Row, Place, Const int64
}

// GapsOf matches such an index. Higher numbers have higher addresses.
func GapsOf(index expr.Expr) (g Gaps, ok bool) {
	at := expr.Linearize(index)
	for _, row := range at.Terms {
		for _, place := range at.Terms {
			if g, ok = gapsOf(row, place); ok {
				g.Const, g.Within = at.Const, at.Plus(expr.Linear{Const: at.Const, Terms: []expr.Term{row, place}}, -1)
				lo, hi, known := g.Within.Bounds()
				return g, known && lo >= 0 && hi < g.Place
			}
		}
	}
	return g, false
}

// gapsOf matches the row and the position of a number.
func gapsOf(row, place expr.Term) (g Gaps, ok bool) {
	r, okRow := row.Atom.(*expr.Binary)
	p, okPlace := place.Atom.(*expr.Binary)
	if !okRow || !okPlace || r.Op != expr.FloorDiv || p.Op != expr.FloorMod || !expr.Same(r.A, p.A) || !expr.Same(r.B, p.B) {
		return g, false
	}
	n, known := r.B.(*expr.Int)
	if !known || place.Coef < 1 || row.Coef < place.Coef*n.Value {
		return g, false
	}
	return Gaps{Number: r.A, Length: n.Value, Row: row.Coef, Place: place.Coef}, true
}

// Bounds returns the smallest and the largest index; ok is false if they are unknown.
func (g Gaps) Bounds() (lo, hi int64, ok bool) {
	lo, hi, ok = expr.Linearize(g.Number).Bounds()
	_, within, known := g.Within.Bounds()
	return g.at(lo), g.at(hi) + within, ok && known && lo >= 0
}

func (g Gaps) at(number int64) int64 {
	return number/g.Length*g.Row + number%g.Length*g.Place + g.Const
}

// TransposedIndex matches an index into rows with contiguous positions: number n lies at n/length + n%length times at
// least the length of a column. No other number uses the elements starting at the index.
func TransposedIndex(index expr.Expr, elements int64) (number expr.Expr, ok bool) {
	at := expr.Linearize(index)
	if len(at.Terms) != 2 {
		return nil, false
	}
	for k, row := range at.Terms {
		place := at.Terms[1-k]
		r, okRow := row.Atom.(*expr.Binary)
		p, okPlace := place.Atom.(*expr.Binary)
		if !okRow || !okPlace || r.Op != expr.FloorDiv || p.Op != expr.FloorMod || !expr.Same(r.A, p.A) || !expr.Same(r.B, p.B) {
			continue
		}
		lo, hi, known := expr.Linear{Terms: []expr.Term{row}}.Bounds()
		return r.A, known && lo >= 0 && row.Coef >= elements && place.Coef > hi+elements-1
	}
	return nil, false
}

// Apart reports whether vectors, or runs of the given number of elements, of different numbers are disjoint.
func (g Gaps) Apart(elements int64) bool {
	_, within, known := g.Within.Bounds()
	return known && within+elements <= g.Place
}
