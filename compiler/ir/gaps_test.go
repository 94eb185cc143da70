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
	lane := &expr.Var{Name: "lane", Extent: 4}
	g, ok = ir.GapsOf(expr.AddE(expr.AddE(row(44), place), lane))
	if lo, hi, known := g.Bounds(); !ok || !known || lo != 0 || hi != 63/10*44+63%10*4+3 || !g.Apart(1) || g.Apart(2) {
		t.Errorf("%+v: %v to %v, %v, %v", g, lo, hi, known, ok)
	}
	turned := func(column int64) expr.Expr {
		return expr.AddE(row(1), expr.MulE(expr.Bin(expr.FloorMod, number, expr.I(10)), expr.I(column)))
	}
	if got, ok := ir.TransposedIndex(turned(7), 1); !ok || !expr.Same(got, number) {
		t.Errorf("columns of seven rows are %v, %v", got, ok)
	}
	if got, ok := ir.TransposedIndex(turned(6), 1); ok {
		t.Errorf("columns of seven rows, of which the last lies in the next column, are %v", got)
	}
	if g, ok := ir.GapsOf(expr.AddE(row(36), place)); ok {
		t.Errorf("%+v has rows that overlap", g)
	}
}
