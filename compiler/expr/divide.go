package expr

// divide splits l into c*quotient + rest, where rest holds only terms that c does not divide and 0 <= rest.Const < c.
func (l Linear) divide(c int64) (quotient, rest Linear) {
	quotient.Const = FloorDivInt(l.Const, c)
	rest.Const = l.Const - c*quotient.Const
	for _, t := range l.Terms {
		if t.Coef%c == 0 {
			t.Coef /= c
			quotient.Terms = append(quotient.Terms, t)
		} else {
			rest.Terms = append(rest.Terms, t)
		}
	}
	return quotient, rest
}

// group splits l into g*multiple + small with 0 <= small < g, for the coefficient g of one of l's terms that
// divides c; then l floordiv c is multiple floordiv c/g. ok is false if there is no such g.
func (l Linear) group(c int64) (g int64, multiple, small Linear, ok bool) {
	for _, t := range l.Terms {
		if t.Coef <= 1 || c%t.Coef != 0 {
			continue
		}
		multiple, small = l.divide(t.Coef)
		if lo, hi, ok := small.Bounds(); ok && lo >= 0 && hi < t.Coef {
			return t.Coef, multiple, small, true
		}
	}
	return 0, Linear{}, Linear{}, false
}

// floorDiv returns l floordiv c, for c > 0.
func (l Linear) floorDiv(c int64) Linear {
	if c == 1 {
		return l
	}
	quotient, rest := l.divide(c)
	if lo, hi, ok := rest.Bounds(); ok && FloorDivInt(lo, c) == FloorDivInt(hi, c) {
		quotient.Const += FloorDivInt(lo, c)
		return quotient
	}
	if g, multiple, _, ok := rest.group(c); ok {
		return quotient.Plus(multiple.floorDiv(c/g), 1)
	}
	if len(rest.Terms) == 1 && rest.Const == 0 && rest.Terms[0].Coef == 1 {
		if n, d, ok := asDivision(rest.Terms[0].Atom); ok && n.Op == FloorDiv && d <= maxBound/c {
			return quotient.Plus(atom(Bin(FloorDiv, n.A, I(c*d))), 1)
		}
	}
	return quotient.Plus(atom(Bin(FloorDiv, rest.Expr(), I(c))), 1)
}

// floorMod returns l floormod c, for c > 0.
func (l Linear) floorMod(c int64) Linear {
	_, rest := l.divide(c)
	if lo, hi, ok := rest.Bounds(); ok && FloorDivInt(lo, c) == FloorDivInt(hi, c) {
		rest.Const -= c * FloorDivInt(lo, c)
		return rest
	}
	if g, multiple, small, ok := rest.group(c); ok {
		return small.Plus(multiple.floorMod(c/g), g)
	}
	return atom(Bin(FloorMod, rest.Expr(), I(c)))
}

// Neighbours returns the index of the first of n neighbours that v counts, if that is always a multiple of n; ok is
// false if this is not known.
func Neighbours(index Expr, v *Var, n int64) (first Expr, ok bool) {
	at := Linearize(index)
	if coef, linear := at.Coef(v); !linear || coef != 1 {
		return nil, false
	}
	at = at.Plus(Linearize(v), -1)
	if at.Const%n != 0 {
		return nil, false
	}
	for _, t := range at.Terms {
		if t.Coef%n != 0 {
			return nil, false
		}
	}
	return at.Expr(), true
}
