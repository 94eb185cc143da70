package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

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
