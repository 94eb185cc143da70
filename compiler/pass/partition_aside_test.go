package pass

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// TestCopysBorderDoesNotRepeatTheWorkBesideIt has a loop over rows that are copied, or are zero after the 6th, and
// are then read by a number of statements. Versions for the border exist only if there is little to repeat.
func TestCopysBorderDoesNotRepeatTheWorkBesideIt(t *testing.T) {
	for work, want := range map[int64]int{8: 2, 64: 1} {
		x := expr.NewInput("x", array.Float32, 64)
		copied := &ir.Buffer{Tensor: expr.NewInput("copied", array.Float32, 8)}
		out := &ir.Buffer{Tensor: expr.NewInput("out", array.Float32, 8*work)}
		row, column := &expr.Var{Name: "row", Extent: 8}, &expr.Var{Name: "column", Extent: 8}
		inside := expr.Bin(expr.Lt, row, expr.I(6))
		var body ir.Block
		body = append(body, &ir.For{Var: column, Extent: 8, Kind: ir.Serial, Body: ir.Block{&ir.Store{Buffer: copied, Index: column,
			Value: expr.Sel(inside, x.At(expr.AddE(expr.MulE(row, expr.I(8)), column)), expr.F(array.Float32, 0))}}})
		for k := range work {
			body = append(body, &ir.Store{Buffer: out, Index: expr.AddE(expr.MulE(row, expr.I(work)), expr.I(k)), Value: copied.Tensor.At(expr.I(k % 8))})
		}
		rows := 0
		parts := partitionBlock(ir.Block{&ir.For{Var: row, Extent: 8, Kind: ir.Serial, Body: body}})
		ir.Visit(parts, func(st ir.Stmt) {
			if n, ok := st.(*ir.For); ok && n.Var.Name == "row" {
				rows++
			}
		})
		if left := comparisons(parts); rows != want || len(left) != 0 {
			t.Errorf("%d statements: %d loops over rows, %d conditions in the copy, want %d and none", work, rows, len(left), want)
		}
	}
}
