package expr

import "math"

// Term is one summand of a Linear: Coef times an atom, which is a variable or a nonlinear expression.
type Term struct {
	Atom Expr
	Coef int64
	// within is the range of the atom; it is valid only if bounded.
	within  interval
	bounded bool
}

// interval is the range lo <= x <= hi.
type interval struct{ lo, hi int64 }

// Linear is an integer expression as Const plus a sum of terms with distinct atoms and non-zero coefficients.
type Linear struct {
	Const int64
	Terms []Term
}

// atom returns an expression as a single term.
func atom(e Expr) Linear {
	within, bounded := valuesOf(e)
	return Linear{Terms: []Term{{Atom: e, Coef: 1, within: within, bounded: bounded}}}
}

// Plus returns l + k*m.
func (l Linear) Plus(m Linear, k int64) Linear {
	sum := Linear{Const: l.Const + k*m.Const}
	if len(m.Terms) == 0 || k == 0 {
		sum.Terms = l.Terms
		return sum
	}
	sum.Terms = append(make([]Term, 0, len(l.Terms)+len(m.Terms)), l.Terms...)
	sum.addAll(Linear{Terms: m.Terms}, k)
	return sum
}

// addAll adds k*m to l in place; l's terms must not be shared.
func (l *Linear) addAll(m Linear, k int64) {
	l.Const += k * m.Const
	for _, t := range m.Terms {
		t.Coef *= k
		l.add(t)
	}
}

// add adds a term to l in place; l's terms must not be shared.
func (l *Linear) add(t Term) {
	if t.Coef == 0 {
		return
	}
	for k := range l.Terms {
		if Same(l.Terms[k].Atom, t.Atom) {
			if l.Terms[k].Coef += t.Coef; l.Terms[k].Coef == 0 {
				l.Terms = append(l.Terms[:k], l.Terms[k+1:]...)
			}
			return
		}
	}
	if l.Terms == nil {
		l.Terms = make([]Term, 0, 4)
	}
	if !l.recombine(t) {
		l.Terms = append(l.Terms, t)
	}
}

// recombine applies (x floormod c) + c*(x floordiv c) = x: if the partner of a quotient or remainder is already
// among the terms, it replaces the two by their common operand.
func (l *Linear) recombine(t Term) bool {
	for k, other := range l.Terms {
		for _, pair := range [2][2]Term{{t, other}, {other, t}} {
			if x := dividend(pair[0], pair[1]); x != nil {
				l.Terms = append(l.Terms[:k], l.Terms[k+1:]...)
				l.addAll(Linearize(x), pair[0].Coef)
				return true
			}
		}
	}
	n, _, ok := asDivision(t.Atom)
	if !ok {
		return false
	}
	for k, other := range l.Terms {
		p, _, ok := asDivision(other.Atom)
		if !ok || p.Op == n.Op {
			continue
		}
		remainder, quotient, mod, div := n, p, t.Coef, other.Coef
		if n.Op == FloorDiv {
			remainder, quotient, mod, div = p, n, div, mod
		}
		_, c, _ := asDivision(remainder)
		if div != mod*c || !partners(remainder, quotient) {
			continue
		}
		l.Terms = append(l.Terms[:k], l.Terms[k+1:]...)
		l.addAll(Linearize(remainder.A), mod)
		return true
	}
	return false
}

// dividend returns x if the terms are x floormod y and (x floordiv y)*y, times the same number, for a positive y that
// is not constant; nil otherwise.
func dividend(remainder, product Term) Expr {
	n, ok := remainder.Atom.(*Binary)
	p, isProduct := product.Atom.(*Binary)
	if !ok || !isProduct || n.Op != FloorMod || p.Op != Mul {
		return nil
	}
	if y, ok := valuesOf(n.B); !ok || y.lo <= 0 {
		return nil
	}
	whole := Linearize(MulE(Bin(FloorDiv, n.A, n.B), n.B))
	if len(whole.Terms) != 1 || whole.Const != 0 || whole.Terms[0].Coef*remainder.Coef != product.Coef || !Same(whole.Terms[0].Atom, p) {
		return nil
	}
	return n.A
}

// partners reports whether a remainder and a quotient have the same operands. A quotient of a quotient is written
// as one, so that x floordiv 32 is the partner of (x floordiv 4) floormod 8.
func partners(remainder, quotient *Binary) bool {
	if Same(remainder.B, quotient.B) {
		return Same(remainder.A, quotient.A)
	}
	inner, d, ok := asDivision(remainder.A)
	_, c, _ := asDivision(remainder)
	_, both, _ := asDivision(quotient)
	return ok && inner.Op == FloorDiv && d <= maxBound/c && both == c*d && Same(inner.A, quotient.A)
}

// asDivision matches a quotient or remainder by a positive constant.
func asDivision(e Expr) (n *Binary, divisor int64, ok bool) {
	n, ok = e.(*Binary)
	if !ok || n.Op != FloorDiv && n.Op != FloorMod {
		return nil, 0, false
	}
	c, ok := n.B.(*Int)
	if !ok || c.Value <= 0 {
		return nil, 0, false
	}
	return n, c.Value, true
}

// Scale returns k*l.
func (l Linear) Scale(k int64) Linear {
	if k == 0 {
		return Linear{}
	}
	scaled := Linear{Const: k * l.Const, Terms: make([]Term, len(l.Terms))}
	for i, t := range l.Terms {
		t.Coef *= k
		scaled.Terms[i] = t
	}
	return scaled
}

// Bounds returns the smallest and largest value; ok is false if an atom is unbounded or the values are too large.
func (l Linear) Bounds() (lo, hi int64, ok bool) {
	within := interval{l.Const, l.Const}
	for _, t := range l.Terms {
		if !t.bounded {
			return 0, 0, false
		}
		scaled, ok := t.within.scale(t.Coef)
		if !ok {
			return 0, 0, false
		}
		if within, ok = within.plus(scaled); !ok {
			return 0, 0, false
		}
	}
	return within.lo, within.hi, true
}

// Expr returns the linear form as an expression.
func (l Linear) Expr() Expr {
	var sum Expr
	for _, t := range l.Terms {
		term := t.Atom
		if t.Coef != 1 {
			term = MulE(t.Atom, I(t.Coef))
		}
		if sum == nil {
			sum = term
		} else {
			sum = AddE(sum, term)
		}
	}
	switch {
	case sum == nil:
		return I(l.Const)
	case l.Const == 0:
		return sum
	}
	return AddE(sum, I(l.Const))
}

// Coef returns the coefficient of v, and reports whether v occurs nowhere else.
func (l Linear) Coef(v *Var) (coef int64, linear bool) {
	linear = true
	for _, t := range l.Terms {
		if t.Atom == Expr(v) {
			coef = t.Coef
		} else if Uses(t.Atom, v) {
			linear = false
		}
	}
	return coef, linear
}

// maxBound is the largest magnitude of bounds, chosen to exclude overflow.
const maxBound = 1 << 61

func (i interval) plus(j interval) (interval, bool) {
	sum := interval{i.lo + j.lo, i.hi + j.hi} // no overflow: all are within maxBound
	return sum, sum.lo >= -maxBound && sum.hi <= maxBound
}

func (i interval) scale(k int64) (interval, bool) {
	largest := max(math.Abs(float64(i.lo)), math.Abs(float64(i.hi)))
	if largest*math.Abs(float64(k)) > maxBound {
		return interval{}, false
	}
	if k < 0 {
		i.lo, i.hi = i.hi, i.lo
	}
	return interval{k * i.lo, k * i.hi}, true
}

// valuesOf returns an expression's range by interval arithmetic; ok is false if it is unknown.
func valuesOf(e Expr) (within interval, ok bool) {
	switch n := e.(type) {
	case *Int:
		return interval{n.Value, n.Value}, n.Value >= -maxBound && n.Value <= maxBound
	case *Var:
		return interval{0, n.Extent - 1}, n.Extent > 0 && n.Extent <= maxBound
	case *Load:
		return interval{0, n.Tensor.Max}, n.Tensor.Max > 0 && n.Tensor.Max <= maxBound
	case *Select:
		a, okA := valuesOf(n.A)
		b, okB := valuesOf(n.B)
		return interval{min(a.lo, b.lo), max(a.hi, b.hi)}, okA && okB
	case *Binary:
		return binaryValues(n)
	}
	return interval{}, false
}

func binaryValues(n *Binary) (within interval, ok bool) {
	b, ok := valuesOf(n.B)
	if !ok {
		return interval{}, false
	}
	if n.Op == FloorMod { // for any operand; what is divided by zero leaves zero
		return interval{0, max(0, b.hi-1)}, b.lo >= 0
	}
	a, ok := valuesOf(n.A)
	if !ok {
		return interval{}, false
	}
	switch n.Op {
	case Add:
		return a.plus(b)
	case Sub:
		return a.plus(interval{-b.hi, -b.lo})
	case Mul:
		first, okFirst := b.scale(a.lo)
		last, okLast := b.scale(a.hi)
		return interval{min(first.lo, last.lo), max(first.hi, last.hi)}, okFirst && okLast
	case FloorDiv:
		if b.lo == b.hi && b.lo > 0 {
			return interval{FloorDivInt(a.lo, b.lo), FloorDivInt(a.hi, b.lo)}, true
		}
		return interval{min(0, a.lo), max(0, a.hi)}, b.lo >= 0 // zero where b is zero
	case Min:
		return interval{min(a.lo, b.lo), min(a.hi, b.hi)}, true
	case Max:
		return interval{max(a.lo, b.lo), max(a.hi, b.hi)}, true
	}
	return interval{}, false
}
