package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestCopyToRowsWithGapsIsEachThreadsOwnLoop: where each thread writes is no plain sum of loops then.
func TestCopyToRowsWithGapsIsEachThreadsOwnLoop(t *testing.T) {
	for _, threads := range []string{"6", "4"} { // rounds of whole rows, and of parts of them
		f := kerneltest.Replayed(t, kerneltest.TileProduct, strings.Replace(kerneltest.Tiles, "split 2 2 8 0", "skew 2 4\nsplit 2 2 "+threads+" 0", 1))
		if before, after := f.Text(), pass.Sink(f).Text(); before == after {
			t.Errorf("%s threads: the loop over rounds has not moved:\n%s", threads, after)
		}
	}
}

// TestCopyToRowsOfRowsWithGapsIsEachThreadsOwnLoop: rows have gaps, and so has what is made of rows; unless the gaps
// are negative, so that two rows overlap.
func TestCopyToRowsOfRowsWithGapsIsEachThreadsOwnLoop(t *testing.T) {
	round, thread := &expr.Var{Name: "round", Extent: 12}, &expr.Var{Name: "thread", Extent: 16}
	number := expr.AddE(expr.MulE(round, expr.I(16)), thread)
	digit := func(by, of, times int64) expr.Expr {
		return expr.MulE(expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, number, expr.I(by)), expr.I(of)), expr.I(times))
	}
	for gap, moves := range map[int64]bool{32: true, -4: false} {
		row := 6 + gap
		index := expr.AddE(expr.AddE(expr.MulE(expr.Bin(expr.FloorDiv, round, expr.I(3)), expr.I(8*row)), digit(6, 8, row)), digit(1, 6, 1))
		b := &ir.Buffer{Tensor: ir.Flat("s0", array.Float32, 8*(8*max(row, 1))), Space: ir.Shared}
		store := &ir.Store{Buffer: b, Index: expr.Simplify(index), Value: expr.F(array.Float32, 1)}
		threads := &ir.For{Var: thread, Extent: 16, Kind: ir.Threads, Body: ir.Block{store}}
		f := &ir.Func{Body: ir.Block{&ir.For{Var: round, Extent: 12, Body: ir.Block{threads}}}}
		if kind := pass.Sink(f).Body[0].(*ir.For).Kind; (kind == ir.Threads) != moves {
			t.Errorf("with gaps of %d the outer loop is of kind %v", gap, kind)
		}
	}
}

// TestSumsAcrossRoundsAreNotSunk: each round adds to what another thread may have stored.
func TestSumsAcrossRoundsAreNotSunk(t *testing.T) {
	f := kerneltest.Replayed(t, "input t0 f32[8,4]\nsum t1 f32[8] over 4 = [t0 i0 r0]\noutput t1\n", "reorder 0 1 0\nbind 0 0 1\n")
	if got := pass.Sink(f).Text(); got != f.Text() {
		t.Errorf("the loop over terms has moved:\n%s", got)
	}
}
