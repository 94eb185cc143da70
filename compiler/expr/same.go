package expr

import "slices"

// Uses reports whether v occurs in e.
func Uses(e Expr, v *Var) bool {
	switch n := e.(type) {
	case *Var:
		return n == v
	case *Binary:
		return Uses(n.A, v) || Uses(n.B, v)
	case *Unary:
		return Uses(n.A, v)
	case *Cast:
		return Uses(n.A, v)
	case *Select:
		return Uses(n.Cond, v) || Uses(n.A, v) || Uses(n.B, v)
	case *Load:
		return slices.ContainsFunc(n.Index, func(x Expr) bool { return Uses(x, v) })
	case Node:
		return slices.ContainsFunc(n.Operands(), func(x Expr) bool { return Uses(x, v) })
	}
	return false
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
		return ok && *x == *y && 1/x.Value == 1/y.Value // 0 and -0 differ
	case *Binary:
		y, ok := b.(*Binary)
		return ok && x.Op == y.Op && x.Fused == y.Fused && Same(x.A, y.A) && Same(x.B, y.B)
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
		return ok && x.Tensor == y.Tensor && slices.EqualFunc(x.Index, y.Index, Same)
	}
	return false
}
