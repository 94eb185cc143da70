package expr

import "github.com/tilth-dev/tilth/compiler/array"

// Term is one summand of a Linear: Coef times an atom, which is a variable or an expression that is not linear.
type Term struct {
	Atom Expr
	Coef int64
}

// Linear is an integer expression as Const plus a sum of terms with distinct atoms and non-zero coefficients.
type Linear struct {
	Const int64
	Terms []Term
}

// Linearize brings an Int64 expression into linear form. Divisions and remainders by positive constants are taken apart as
// far as the variables' extents allow; variables range over 0 <= v < Extent.
func Linearize(e Expr) Linear {
	switch n := e.(type) {
	case *Int:
		return Linear{Const: n.Value}
	case *Binary:
		return linearizeBinary(n)
	default:
		return Linear{Terms: []Term{{Atom: e, Coef: 1}}}
	}
}

func linearizeBinary(n *Binary) Linear {
	a, b := Linearize(n.A), Linearize(n.B)
	switch n.Op {
	case Add:
		return a.Plus(b, 1)
	case Sub:
		return a.Plus(b, -1)
	case Mul:
		if len(b.Terms) == 0 {
			return a.Scale(b.Const)
		}
		if len(a.Terms) == 0 {
			return b.Scale(a.Const)
		}
	case FloorDiv:
		if len(b.Terms) == 0 && b.Const > 0 {
			return a.floorDiv(b.Const)
		}
	case FloorMod:
		if len(b.Terms) == 0 && b.Const > 0 {
			return a.floorMod(b.Const)
		}
	case Min, Max:
		if d := a.Plus(b, -1); len(d.Terms) < len(a.Terms)+len(b.Terms) || len(a.Terms) == 0 || len(b.Terms) == 0 {
			lo, hi, ok := d.Bounds()
			if ok && (n.Op == Min && hi <= 0 || n.Op == Max && lo >= 0) {
				return a
			}
			if ok && (n.Op == Min && lo >= 0 || n.Op == Max && hi <= 0) {
				return b
			}
		}
	}
	return Linear{Terms: []Term{{Atom: Bin(n.Op, a.Expr(), b.Expr()), Coef: 1}}}
}

// Plus is l + k*m.
func (l Linear) Plus(m Linear, k int64) Linear {
	sum := Linear{Const: l.Const + k*m.Const, Terms: append([]Term{}, l.Terms...)}
	for _, t := range m.Terms {
		sum.add(t.Atom, k*t.Coef)
	}
	return sum
}

func (l *Linear) add(atom Expr, coef int64) {
	if coef == 0 {
		return
	}
	for k := range l.Terms {
		if Same(l.Terms[k].Atom, atom) {
			if l.Terms[k].Coef += coef; l.Terms[k].Coef == 0 {
				l.Terms = append(l.Terms[:k:k], l.Terms[k+1:]...)
			}
			return
		}
	}
	if l.recombine(atom, coef) {
		return
	}
	l.Terms = append(l.Terms, Term{Atom: atom, Coef: coef})
}

// recombine uses c*(x floormod c) + c*m*(x floordiv c)... = m*x: when the partner of a quotient or remainder is already
// among the terms, the two are replaced by their common operand.
func (l *Linear) recombine(atom Expr, coef int64) bool {
	n, ok := atom.(*Binary)
	if !ok || n.Op != FloorDiv && n.Op != FloorMod {
		return false
	}
	c, ok := n.B.(*Int)
	if !ok {
		return false
	}
	for k, t := range l.Terms {
		p, ok := t.Atom.(*Binary)
		if !ok || p.Op != FloorDiv && p.Op != FloorMod || p.Op == n.Op || !Same(p.A, n.A) || !Same(p.B, n.B) {
			continue
		}
		mod, div := coef, t.Coef
		if n.Op == FloorDiv {
			mod, div = div, mod
		}
		if div != mod*c.Value {
			continue
		}
		l.Terms = append(l.Terms[:k:k], l.Terms[k+1:]...)
		*l = l.Plus(Linearize(n.A), mod)
		return true
	}
	return false
}

// Scale is k*l.
func (l Linear) Scale(k int64) Linear {
	return Linear{}.Plus(l, k)
}

// divide splits l into c*quotient + rest, where rest has only what c does not divide and 0 <= rest.Const < c.
func (l Linear) divide(c int64) (quotient, rest Linear) {
	quotient.Const = FloorDivInt(l.Const, c)
	rest.Const = l.Const - c*quotient.Const
	for _, t := range l.Terms {
		if t.Coef%c == 0 {
			quotient.Terms = append(quotient.Terms, Term{t.Atom, t.Coef / c})
		} else {
			rest.Terms = append(rest.Terms, t)
		}
	}
	return quotient, rest
}

func (l Linear) floorDiv(c int64) Linear {
	quotient, rest := l.divide(c)
	if lo, hi, ok := rest.Bounds(); ok && FloorDivInt(lo, c) == FloorDivInt(hi, c) {
		quotient.Const += FloorDivInt(lo, c)
		return quotient
	}
	if len(rest.Terms) == 1 && rest.Const == 0 && rest.Terms[0].Coef == 1 {
		if n, ok := rest.Terms[0].Atom.(*Binary); ok && n.Op == FloorDiv {
			if d, ok := n.B.(*Int); ok && d.Value > 0 {
				quotient.add(Bin(FloorDiv, n.A, I(c*d.Value)), 1)
				return quotient
			}
		}
	}
	quotient.add(Bin(FloorDiv, rest.Expr(), I(c)), 1)
	return quotient
}

func (l Linear) floorMod(c int64) Linear {
	_, rest := l.divide(c)
	if lo, hi, ok := rest.Bounds(); ok && FloorDivInt(lo, c) == FloorDivInt(hi, c) {
		rest.Const -= c * FloorDivInt(lo, c)
		return rest
	}
	return Linear{Terms: []Term{{Atom: Bin(FloorMod, rest.Expr(), I(c)), Coef: 1}}}
}

// Bounds are the smallest and largest value; ok is false when an atom is unbounded.
func (l Linear) Bounds() (lo, hi int64, ok bool) {
	lo, hi = l.Const, l.Const
	for _, t := range l.Terms {
		a, b, ok := atomBounds(t.Atom)
		if !ok {
			return 0, 0, false
		}
		if t.Coef < 0 {
			a, b = b, a
		}
		lo, hi = lo+t.Coef*a, hi+t.Coef*b
	}
	return lo, hi, true
}

func atomBounds(e Expr) (lo, hi int64, ok bool) {
	switch n := e.(type) {
	case *Var:
		return 0, n.Extent - 1, n.Extent > 0
	case *Binary:
		c, isConst := n.B.(*Int)
		switch {
		case n.Op == FloorMod && isConst && c.Value > 0:
			return 0, c.Value - 1, true
		case n.Op == FloorDiv && isConst && c.Value > 0:
			lo, hi, ok = Linearize(n.A).Bounds()
			return FloorDivInt(lo, c.Value), FloorDivInt(hi, c.Value), ok
		case n.Op == Min || n.Op == Max:
			return extremeBounds(n)
		}
	case *Select:
		lo, hi, ok = Linearize(n.A).Bounds()
		lo2, hi2, ok2 := Linearize(n.B).Bounds()
		return min(lo, lo2), max(hi, hi2), ok && ok2
	}
	return 0, 0, false
}

func extremeBounds(n *Binary) (lo, hi int64, ok bool) {
	lo1, hi1, ok1 := Linearize(n.A).Bounds()
	lo2, hi2, ok2 := Linearize(n.B).Bounds()
	if n.Op == Min {
		return min(lo1, lo2), min(hi1, hi2), ok1 && ok2
	}
	return max(lo1, lo2), max(hi1, hi2), ok1 && ok2
}

// Expr is the linear form as an expression.
func (l Linear) Expr() Expr {
	var sum Expr
	for _, t := range l.Terms {
		term := MulE(t.Atom, I(t.Coef))
		if sum == nil {
			sum = term
		} else {
			sum = AddE(sum, term)
		}
	}
	if sum == nil {
		return I(l.Const)
	}
	return AddE(sum, I(l.Const))
}

// Coef is the coefficient of v, and whether v occurs nowhere else.
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

// Uses reports whether v occurs in e.
func Uses(e Expr, v *Var) bool {
	found := false
	Walk(e, func(x Expr) { found = found || x == Expr(v) })
	return found
}

// Same reports whether two expressions are structurally equal.
func Same(a, b Expr) bool {
	if a == b {
		return true
	}
	switch x := a.(type) {
	case *Int:
		y, ok := b.(*Int)
		return ok && *x == *y
	case *Float:
		y, ok := b.(*Float)
		return ok && *x == *y
	case *Binary:
		y, ok := b.(*Binary)
		return ok && x.Op == y.Op && Same(x.A, y.A) && Same(x.B, y.B)
	case *Unary:
		y, ok := b.(*Unary)
		return ok && x.Op == y.Op && Same(x.A, y.A)
	case *Cast:
		y, ok := b.(*Cast)
		return ok && x.Type == y.Type && Same(x.A, y.A)
	case *Select:
		y, ok := b.(*Select)
		return ok && Same(x.Cond, y.Cond) && Same(x.A, y.A) && Same(x.B, y.B)
	case *Load:
		y, ok := b.(*Load)
		return ok && x.Tensor == y.Tensor && sameAll(x.Index, y.Index)
	}
	return false
}

func sameAll(a, b []Expr) bool {
	for k := range a {
		if !Same(a[k], b[k]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Simplify rewrites integer arithmetic into linear form and decides comparisons that the variables' extents decide.
func Simplify(e Expr) Expr {
	switch n := e.(type) {
	case *Binary:
		if n.A.DType() == array.Int64 {
			if n.Op.IsComparison() {
				return simplifyComparison(n)
			}
			return Linearize(simplifyOperands(n)).Expr()
		}
		return Bin(n.Op, Simplify(n.A), Simplify(n.B))
	case *Unary:
		return Un(n.Op, Simplify(n.A))
	case *Select:
		return Sel(Simplify(n.Cond), Simplify(n.A), Simplify(n.B))
	case *Cast:
		return To(n.Type, Simplify(n.A))
	case *Load:
		index := make([]Expr, len(n.Index))
		for k, x := range n.Index {
			index[k] = Simplify(x)
		}
		return &Load{Tensor: n.Tensor, Index: index}
	default:
		return e
	}
}

// simplifyOperands simplifies selections, casts and loads inside integer arithmetic, which Linearize takes as atoms.
func simplifyOperands(e Expr) Expr {
	switch n := e.(type) {
	case *Binary:
		if n.A.DType() == array.Int64 {
			return Bin(n.Op, simplifyOperands(n.A), simplifyOperands(n.B))
		}
		return Simplify(n)
	case *Select, *Cast, *Load, *Unary:
		return Simplify(n)
	default:
		return e
	}
}

func simplifyComparison(n *Binary) Expr {
	a, b := Linearize(simplifyOperands(n.A)), Linearize(simplifyOperands(n.B))
	if lo, hi, ok := a.Plus(b, -1).Bounds(); ok {
		switch {
		case n.Op == Lt && hi < 0, n.Op == Le && hi <= 0, n.Op == Ne && (lo > 0 || hi < 0), n.Op == Eq && lo == 0 && hi == 0:
			return &Int{Value: 1, Type: array.Bool}
		case n.Op == Lt && lo >= 0, n.Op == Le && lo > 0, n.Op == Eq && (lo > 0 || hi < 0), n.Op == Ne && lo == 0 && hi == 0:
			return &Int{Value: 0, Type: array.Bool}
		}
	}
	return Bin(n.Op, a.Expr(), b.Expr())
}
