package pass

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Uniform returns a condition that is uniform across lanes as a condition on the first lane; ok is false if lanes
// may differ. A bound at a multiple of the vector length from the start, as in a concatenation of whole vectors,
// never splits a vector.
func Uniform(cond expr.Expr, lane *expr.Var) (first expr.Expr, ok bool) {
	if !expr.Uses(cond, lane) {
		return cond, true
	}
	n, isBinary := cond.(*expr.Binary)
	if !isBinary {
		return nil, false
	}
	switch n.Op {
	case expr.And, expr.Or:
		a, okA := Uniform(n.A, lane)
		b, okB := Uniform(n.B, lane)
		if !okA || !okB {
			return nil, false
		}
		return expr.Bin(n.Op, a, b), true
	case expr.Lt, expr.Le:
		return uniformBound(n, lane)
	}
	return nil, false
}

func uniformBound(n *expr.Binary, lane *expr.Var) (first expr.Expr, ok bool) {
	if n.A.DType() != array.Int64 {
		return nil, false
	}
	bound := expr.Linearize(expr.SubE(n.A, n.B)) // n holds where bound < 0, or bound - 1 < 0
	if n.Op == expr.Le {
		bound.Const--
	}
	coef, linear := bound.Coef(lane)
	if !linear || coef != 1 && coef != -1 {
		return nil, false
	}
	begin := bound.Plus(expr.Linearize(lane), -coef)
	if coef == -1 { // the last lane has the smallest bound: bound < 0 splits at begin-lanes+1 to begin
		begin.Const -= lane.Extent - 1
	}
	for _, t := range begin.Terms {
		if t.Coef%lane.Extent != 0 {
			return nil, false
		}
	}
	if begin.Const%lane.Extent != 0 {
		return nil, false
	}
	return expr.Bin(expr.Lt, begin.Expr(), expr.I(0)), true
}
