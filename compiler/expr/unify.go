package expr

import "slices"

// Unify returns the ways in which a value computes a pattern, each as what element found in the parts of both, in the
// order of the pattern. Factors may change places.
func Unify[T any](pattern, value Expr, element func(pattern, value Expr) (found T, ok bool)) (ways [][]T) {
	if found, ok := element(pattern, value); ok {
		return [][]T{{found}}
	}
	if Same(pattern, value) {
		return [][]T{nil}
	}
	switch p := pattern.(type) {
	case *Binary:
		n, ok := value.(*Binary)
		if !ok || n.Op != p.Op || n.Fused != p.Fused {
			return nil
		}
		ways = unifyBoth(p, n.A, n.B, element)
		if p.Op == Mul {
			ways = append(ways, unifyBoth(p, n.B, n.A, element)...)
		}
	case *Unary:
		if n, ok := value.(*Unary); ok && n.Op == p.Op {
			return Unify(p.A, n.A, element)
		}
	case *Cast:
		if n, ok := value.(*Cast); ok && n.Type == p.Type {
			return Unify(p.A, n.A, element)
		}
	}
	return ways
}

// unifyBoth returns the ways in which two values are the operands of an operator.
func unifyBoth[T any](p *Binary, a, b Expr, element func(pattern, value Expr) (T, bool)) (ways [][]T) {
	right := Unify(p.B, b, element)
	for _, x := range Unify(p.A, a, element) {
		for _, y := range right {
			ways = append(ways, slices.Concat(x, y))
		}
	}
	return ways
}
