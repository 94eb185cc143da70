package pass_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// epilogue is a launch whose threads store so many rows of four results each, with a bias for each column, a bound
// that is asked for where results are large, and what the row had before.
func epilogue(rows int64, before *expr.Tensor, out *ir.Buffer) *ir.Func {
	bias, bound := ir.Flat("bias", array.Float32, 4), ir.Flat("bound", array.Float32, 4)
	row, column := &expr.Var{Name: "row", Extent: rows}, &expr.Var{Name: "column", Extent: 4}
	at := expr.Simplify(expr.AddE(expr.MulE(row, expr.I(4)), column))
	sum := expr.AddE(before.At(at), bias.At(column))
	value := expr.AddE(sum, expr.Sel(expr.Bin(expr.Lt, expr.F(array.Float32, 6), sum), bound.At(column), expr.F(array.Float32, 0)))
	inner := &ir.For{Var: column, Extent: 4, Kind: ir.Unrolled, Body: ir.Block{&ir.Store{Buffer: out, Index: at, Value: value}}}
	outer := &ir.For{Var: row, Extent: rows, Kind: ir.Unrolled, Body: ir.Block{inner}}
	threads := &ir.For{Var: &expr.Var{Name: "thread", Extent: 32}, Extent: 32, Kind: ir.Threads, Body: ir.Block{outer}}
	return &ir.Func{Body: ir.Block{&ir.For{Var: &expr.Var{Name: "block", Extent: 2}, Extent: 2, Kind: ir.Blocks, Body: ir.Block{threads}}}}
}

// TestPreloadHoistsEpilogueLoads checks loads ahead of use, row by row if all need too many registers, but not
// conditional loads, nor of tensors that the launch writes.
func TestPreloadHoistsEpilogueLoads(t *testing.T) {
	out := &ir.Buffer{Tensor: ir.Flat("out", array.Float32, 64)}
	before := ir.Flat("before", array.Float32, 64)
	for name, c := range map[string]struct {
		f     *ir.Func
		ahead []string
	}{
		"few":     {epilogue(2, before, out), []string{"bias_ahead", "before_ahead"}},
		"many":    {epilogue(16, before, out), []string{"bias_ahead", "before_ahead"}},
		"written": {epilogue(2, out.Tensor, out), []string{"bias_ahead"}},
	} {
		text := pass.Preload(c.f).Text()
		if inRows := strings.Index(text, "unrolled row") < strings.Index(text, "private"); inRows != (name == "many") {
			t.Errorf("%s: loads stand in the loop over rows, or not:\n%s", name, text)
		}
		for _, tensor := range []string{"bias_ahead", "before_ahead", "bound_ahead", "out_ahead"} {
			if strings.Contains(text, tensor) != slices.Contains(c.ahead, tensor) {
				t.Errorf("%s: %s is loaded where it should not be, or not:\n%s", name, tensor, text)
			}
		}
	}
}
