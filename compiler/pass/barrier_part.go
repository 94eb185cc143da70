package pass

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// barrierPart is a superset of the elements of a buffer that threads access: lo to hi, refined by rows and by
// thread where these are known.
type barrierPart struct {
	span
	// row is the length of a row in elements, and columns the range used in each row; row is 0 if unknown.
	row     int64
	columns span
	// each is the distance between the elements of neighbouring threads, and own the elements of the first thread;
	// each is 0 if several threads may access the same element.
	each int64
	own  span
}

// span is the half-open range lo <= i < hi; it is empty if hi is 0.
type span struct{ lo, hi int64 }

// all is the part that covers any element.
var all = barrierPart{span: span{0, math.MaxInt64}}

func (s span) plus(t span) span { return span{min(s.lo, t.lo), max(s.hi, t.hi)} }

func (s span) meets(t span) bool { return s.lo < t.hi && t.lo < s.hi }

// plus returns a part that covers both p and q.
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

// apart reports whether each thread accesses the same private elements in both parts.
func (p barrierPart) apart(q barrierPart) bool {
	own := p.own.plus(q.own)
	return p.each > 0 && p.each == q.each && own.hi-own.lo <= p.each
}

// meets reports whether one thread may access an element in p that another thread accesses in q.
func (p barrierPart) meets(q barrierPart) bool {
	if p.row > 0 && p.row == q.row && !p.columns.meets(q.columns) || p.apart(q) {
		return false
	}
	return p.span.meets(q.span)
}

// within returns the part of a buffer that an access of the given number of elements covers, over all iterations of
// the surrounding loops. thread is the variable of the loop over threads, or nil.
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
		if lo, hi, ok := rest.Bounds(); ok && hi-lo+elements <= t.Coef && !expr.Uses(rest.Expr(), thread) {
			p.each, p.own = t.Coef, span{lo, hi + elements}
		}
	}
	return p
}

// columns returns the range of columns that an index covers in rows of the given length; ok is false if an access
// may cross the end of a row.
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
