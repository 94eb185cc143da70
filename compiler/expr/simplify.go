package expr

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Simplifier rewrites expressions into a simpler form of the same value, and replaces variables and tensors on the
// way. The zero value replaces nothing.
type Simplifier struct {
	// Values holds the replacements of variables, which must be simplified themselves.
	Values map[*Var]Expr
	// Tensors maps tensors to those to load from instead, at the same index.
	Tensors map[*Tensor]*Tensor
}

// Simplify rewrites integer arithmetic into linear form and decides comparisons by the variables' extents.
func Simplify(e Expr) Expr { return Simplifier{}.Simplify(e) }

// Linearize converts an Int64 expression to linear form. It splits divisions and remainders by positive constants
// as far as the variables' extents allow; variables range over 0 <= v < Extent.
func Linearize(e Expr) Linear { return Simplifier{}.Linearize(e) }

// Changes reports whether any variable or tensor of e is to be replaced.
func (s Simplifier) Changes(e Expr) bool {
	switch n := e.(type) {
	case *Var:
		_, ok := s.Values[n]
		return ok
	case *Binary:
		return s.Changes(n.A) || s.Changes(n.B)
	case *Unary:
		return s.Changes(n.A)
	case *Cast:
		return s.Changes(n.A)
	case *Select:
		return s.Changes(n.Cond) || s.Changes(n.A) || s.Changes(n.B)
	case *Load:
		_, ok := s.Tensors[n.Tensor]
		return ok || slices.ContainsFunc(n.Index, s.Changes)
	case Node:
		return slices.ContainsFunc(n.Operands(), s.Changes)
	}
	return false
}

// Simplify returns e simplified, with the replacements.
func (s Simplifier) Simplify(e Expr) Expr {
	switch n := e.(type) {
	case *Var:
		if r, ok := s.Values[n]; ok {
			return r
		}
	case *Binary:
		switch {
		case n.A.DType() != array.Int64:
			return n.rebuilt(s.Simplify(n.A), s.Simplify(n.B))
		case n.Op.IsComparison():
			return s.comparison(n)
		}
		return s.Linearize(n).Expr()
	case *Unary:
		return Un(n.Op, s.Simplify(n.A))
	case *Select:
		return s.selection(n)
	case *Cast:
		return To(n.Type, s.Simplify(n.A))
	case *Load:
		return s.load(n)
	case Node:
		return n.Map(s.Simplify)
	}
	return e
}

// selection does not rewrite the side that a decided condition drops.
func (s Simplifier) selection(n *Select) Expr {
	cond := s.Simplify(n.Cond)
	if c, ok := cond.(*Int); ok {
		if c.Value != 0 {
			return s.Simplify(n.A)
		}
		return s.Simplify(n.B)
	}
	return Sel(cond, s.Simplify(n.A), s.Simplify(n.B))
}

func (s Simplifier) load(n *Load) Expr {
	index := make([]Expr, len(n.Index))
	for k, x := range n.Index {
		index[k] = s.Simplify(x)
	}
	t := n.Tensor
	if r, ok := s.Tensors[t]; ok {
		t = r
	}
	return &Load{Tensor: t, Index: index}
}

func (s Simplifier) comparison(n *Binary) Expr {
	a, b := s.Linearize(n.A), s.Linearize(n.B)
	if lo, hi, ok := a.Plus(b, -1).Bounds(); ok {
		switch {
		case n.Op == Lt && hi < 0, n.Op == Le && hi <= 0, n.Op == Ne && (lo > 0 || hi < 0), n.Op == Eq && lo == 0 && hi == 0:
			return &Int{Value: 1, Type: array.Bool}
		case n.Op == Lt && lo >= 0, n.Op == Le && lo > 0, n.Op == Eq && (lo > 0 || hi < 0), n.Op == Ne && lo == 0 && hi == 0:
			return &Int{Value: 0, Type: array.Bool}
		}
	}
	if bound, ok := quotientBound(n.Op, a.Plus(b, -1)); ok {
		return bound
	}
	return Bin(n.Op, a.Expr(), b.Expr())
}

// quotientBound rewrites the comparison of a linear form with zero, op Lt or Le, as one of the dividend, if a
// quotient is its only term: x floordiv 3 < 5 where x < 15.
func quotientBound(op BinaryOp, l Linear) (Expr, bool) {
	if op != Lt && op != Le || len(l.Terms) != 1 {
		return nil, false
	}
	n, by, ok := asDivision(l.Terms[0].Atom)
	if !ok || n.Op != FloorDiv || max(l.Const, -l.Const) >= maxBound/by-1 {
		return nil, false
	}
	end := -l.Const // quotient < end, or -quotient < end
	if op == Le {
		end++
	}
	switch l.Terms[0].Coef {
	case 1:
		return Bin(Lt, n.A, I(end*by)), true
	case -1:
		return Bin(Le, I((1-end)*by), n.A), true
	}
	return nil, false
}

// Linearize returns the linear form of e with the replacements.
func (s Simplifier) Linearize(e Expr) Linear {
	var l Linear
	s.addTo(&l, e, 1)
	return l
}

// addTo adds k*e to l in place; l's terms must not be shared.
func (s Simplifier) addTo(l *Linear, e Expr, k int64) {
	switch n := e.(type) {
	case *Int:
		l.Const += k * n.Value
		return
	case *Var:
		if r, ok := s.Values[n]; ok {
			Simplifier{}.addTo(l, r, k)
			return
		}
		l.add(Term{Atom: n, Coef: k, within: interval{0, n.Extent - 1}, bounded: n.Extent > 0 && n.Extent <= maxBound})
		return
	case *Binary:
		if n.A.DType() == array.Int64 && !n.Op.IsComparison() {
			s.addBinary(l, n, k)
			return
		}
	case *Select, *Load, *Cast, *Unary:
		simple := s.Simplify(e)
		switch simple.(type) {
		case *Select, *Load, *Cast, *Unary:
			l.addAll(atom(simple), k)
		default:
			Simplifier{}.addTo(l, simple, k)
		}
		return
	}
	l.addAll(atom(s.Simplify(e)), k)
}

func (s Simplifier) addBinary(l *Linear, n *Binary, k int64) {
	switch n.Op {
	case Add:
		s.addTo(l, n.A, k)
		s.addTo(l, n.B, k)
		return
	case Sub:
		s.addTo(l, n.A, k)
		s.addTo(l, n.B, -k)
		return
	case Mul:
		if c, ok := n.B.(*Int); ok {
			s.addTo(l, n.A, k*c.Value)
			return
		}
	}
	l.addAll(s.binary(n), k)
}

// binary returns the linear form of operators other than sums and differences.
func (s Simplifier) binary(n *Binary) Linear {
	a, b := s.Linearize(n.A), s.Linearize(n.B)
	switch n.Op {
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
		if lo, hi, ok := a.Plus(b, -1).Bounds(); ok {
			switch {
			case n.Op == Min && hi <= 0, n.Op == Max && lo >= 0:
				return a
			case n.Op == Min && lo >= 0, n.Op == Max && hi <= 0:
				return b
			}
		}
	}
	e := Bin(n.Op, a.Expr(), b.Expr())
	if c, ok := e.(*Int); ok {
		return Linear{Const: c.Value}
	}
	return atom(e)
}
