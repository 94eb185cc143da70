package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// guarded returns two loops of a thread around a store below an end: rows of a tile, and the two neighbours of each.
func guarded(position func(row, own *expr.Var) expr.Expr, end int64) *ir.Func {
	row, own := &expr.Var{Name: "row", Extent: 4}, &expr.Var{Name: "own", Extent: 2}
	b := &ir.Buffer{Tensor: ir.Flat("a0", array.Float32, 8)}
	at := expr.Simplify(expr.AddE(expr.MulE(row, expr.I(2)), own))
	store := &ir.Store{Buffer: b, Index: at, Value: expr.F(array.Float32, 1)}
	inner := &ir.For{Var: own, Extent: 2, Kind: ir.Unrolled, Body: ir.Block{
		&ir.If{Cond: expr.Bin(expr.Lt, expr.Simplify(position(row, own)), expr.I(end)), Then: ir.Block{store}},
	}}
	return &ir.Func{Body: ir.Block{&ir.For{Var: row, Extent: 4, Body: ir.Block{inner}}}}
}

// TestInvariantConditionsAreHoisted checks invariant conditions, and that others stay inside.
func TestInvariantConditionsAreHoisted(t *testing.T) {
	block := &expr.Var{Name: "block", Extent: 8}
	both := func(row, own *expr.Var) expr.Expr { return expr.AddE(expr.MulE(row, expr.I(2)), own) }
	for name, c := range map[string]struct {
		position func(row, own *expr.Var) expr.Expr
		end      int64
		// within is how many loops are around the condition then.
		within int
	}{
		"of neither":                      {func(_, _ *expr.Var) expr.Expr { return block }, 5, 0},
		"of the outer loop":               {func(row, _ *expr.Var) expr.Expr { return row }, 3, 1},
		"of all neighbours or none":       {both, 6, 1},
		"of some neighbours":              {both, 5, 2},
		"of neighbours that begin oddly":  {func(_, own *expr.Var) expr.Expr { return expr.AddE(block, own) }, 6, 2},
		"of neighbours that lie far away": {func(_, own *expr.Var) expr.Expr { return expr.MulE(own, expr.I(4)) }, 4, 2},
	} {
		within := 0
		st := pass.Guard(guarded(c.position, c.end)).Body[0]
		for n, ok := st.(*ir.For); ok; n, ok = st.(*ir.For) {
			within++
			st = n.Body[0]
		}
		if _, ok := st.(*ir.If); !ok || within != c.within {
			t.Errorf("a condition %s is asked in %d loops, not in %d", name, within, c.within)
		}
	}
}
