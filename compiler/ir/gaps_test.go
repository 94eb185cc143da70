package ir_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

func TestIndicesOfRowsWithGapsAreBounded(t *testing.T) {
	round, thread := &expr.Var{Name: "round", Extent: 2}, &expr.Var{Name: "thread", Extent: 32}
	number := expr.AddE(expr.MulE(round, expr.I(32)), thread)
	row := func(by int64) expr.Expr { return expr.MulE(expr.Bin(expr.FloorDiv, number, expr.I(10)), expr.I(by)) }
	place := expr.MulE(expr.Bin(expr.FloorMod, number, expr.I(10)), expr.I(4))
	g, ok := ir.GapsOf(expr.AddE(expr.AddE(row(44), place), expr.I(7)))
	if lo, hi, known := g.Bounds(); !ok || !known || lo != 7 || hi != 63/10*44+63%10*4+7 {
		t.Errorf("%+v: %v to %v, %v, %v", g, lo, hi, known, ok)
	}
	if g, ok := ir.GapsOf(expr.AddE(row(36), place)); ok {
		t.Errorf("%+v has rows that overlap", g)
	}
}
