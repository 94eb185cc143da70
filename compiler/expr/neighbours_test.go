package expr_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TestNeighboursBeginAtAMultipleOfTheirNumber, or are not known to.
func TestNeighboursBeginAtAMultipleOfTheirNumber(t *testing.T) {
	i, v := &expr.Var{Name: "i", Extent: 8}, &expr.Var{Name: "v", Extent: 4}
	sum := func(coef, own, constant int64) expr.Expr {
		return expr.AddE(expr.AddE(expr.MulE(i, expr.I(coef)), expr.MulE(v, expr.I(own))), expr.I(constant))
	}
	for _, c := range []struct {
		index expr.Expr
		ok    bool
	}{{sum(12, 1, 8), true}, {sum(0, 1, 0), true}, {sum(6, 1, 8), false}, {sum(12, 1, 2), false}, {sum(12, 2, 8), false}, {sum(12, 0, 8), false}} {
		first, ok := expr.Neighbours(c.index, v, 4)
		if ok != c.ok || ok && expr.Uses(first, v) {
			t.Errorf("neighbours at %v: %v, %v", c.index, first, ok)
		}
	}
}
