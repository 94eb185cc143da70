package pass

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// barrierPart is the elements of a buffer that threads use: those from lo to hi at most. There may be more to say of
// them.
type barrierPart struct {
	span
	// row is how many elements a row has, and columns those of a row that are used; 0 where nothing is known.
	row     int64
	columns span
	// each is how far apart the elements of two neighbouring threads lie, and own those of the first one; 0 where
	// elements may be several threads'.
	each int64
	own  span
}

// span is lo <= i < hi; nothing where hi is 0.
type span struct{ lo, hi int64 }

// all stands for elements of which nothing is known.
var all = barrierPart{span: span{0, math.MaxInt64}}

func (s span) plus(t span) span { return span{min(s.lo, t.lo), max(s.hi, t.hi)} }

func (s span) meets(t span) bool { return s.lo < t.hi && t.lo < s.hi }

// plus is both parts.
func (p barrierPart) plus(q barrierPart) barrierPart {
	switch {
	case p.hi == 0:
		return q
	case q.hi == 0:
		return p
	}
	sum := barrierPart{span: p.span.plus(q.span)}
	if p.row == q.row {
		sum.row, sum.columns = p.row, p.columns.plus(q.columns)
	}
	if p.apart(q) {
		sum.each, sum.own = p.each, p.own.plus(q.own)
	}
	return sum
}

// apart reports whether each thread has elements of its own in both.
func (p barrierPart) apart(q barrierPart) bool {
	own := p.own.plus(q.own)
	return p.each > 0 && p.each == q.each && own.hi-own.lo <= p.each
}

// meets reports whether an element may be one thread's in a part and another's in the other one.
func (p barrierPart) meets(q barrierPart) bool {
	if p.row > 0 && p.row == q.row && !p.columns.meets(q.columns) || p.apart(q) {
		return false
	}
	return p.span.meets(q.span)
}

// within is the part of a buffer that begins at an index and has so many elements, whatever the loops around it. The
// threads are those of a loop over a variable, or nil.
func within(index expr.Expr, elements int64, thread *expr.Var) barrierPart {
	at := expr.Linearize(index)
	lo, hi, ok := at.Bounds()
	if g, gaps := ir.GapsOf(index); gaps {
		lo, hi, ok = g.Bounds()
	}
	if !ok || lo < 0 {
		return all
	}
	p := barrierPart{span: span{lo, hi + elements}}
	for _, t := range at.Terms {
		if c, ok := columns(at, t.Coef); ok && c.hi+elements-1 <= t.Coef && (p.row == 0 || t.Coef < p.row) {
			p.row, p.columns = t.Coef, span{c.lo, c.hi + elements - 1}
		}
		if t.Atom != expr.Expr(thread) || t.Coef < 1 {
			continue
		}
		rest := at.Plus(expr.Linearize(thread), -t.Coef)
		if lo, hi, ok := rest.Bounds(); ok && hi-lo+elements <= t.Coef && !barrierUses(rest, thread) {
			p.each, p.own = t.Coef, span{lo, hi + elements}
		}
	}
	return p
}

// barrierUses reports whether a sum depends on a variable.
func barrierUses(l expr.Linear, v *expr.Var) bool {
	for _, t := range l.Terms {
		if expr.Uses(t.Atom, v) {
			return true
		}
	}
	return false
}

// columns are those that an index has in rows of that many elements; ok is false where it may leave a row.
func columns(at expr.Linear, row int64) (c span, ok bool) {
	if row < 2 {
		return span{}, false
	}
	rest := expr.Linear{Const: at.Const % row}
	for _, t := range at.Terms {
		if t.Coef%row != 0 {
			rest.Terms = append(rest.Terms, t)
		}
	}
	lo, hi, ok := rest.Bounds()
	return span{lo, hi + 1}, ok && lo >= 0 && hi < row
}
