package ir_test

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// TestRunsThatRepeatAreLoadedOnce: a load repeats a run of 16 bytes or more; shorter ones are picked from what is
// loaded whole.
func TestRunsThatRepeatAreLoadedOnce(t *testing.T) {
	lane := &expr.Var{Name: "k", Extent: 16}
	t0 := ir.Flat("t0", array.Float32, 64)
	for _, c := range []struct {
		offsets []int64
		width   int64
	}{
		{[]int64{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, 4},
		{[]int64{8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11}, 4},
		{[]int64{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}, 8},
		{[]int64{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 4}, 16},         // the last is another
		{[]int64{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}, 16},         // three are no vector
		{[]int64{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, 16},         // nothing repeats
		{[]int64{4, 5, 6, 7, 4, 5, 6, 7, 12, 13, 14, 15, 12, 13, 14, 15}, 16}, // two runs
	} {
		p := ir.Pick(lane, t0, expr.Linear{Const: 16}, c.offsets)
		if p == nil || p.Width != c.width {
			t.Errorf("%v: picked from %+v, want vectors of %d", c.offsets, p, c.width)
			continue
		}
		var got []int64
		for _, pick := range p.Picks {
			first := expr.Linearize(p.From[pick/p.Width].Index[0]).Const
			got = append(got, first+pick%p.Width-16)
		}
		if !slices.Equal(got, c.offsets) {
			t.Errorf("%v: picks %v", c.offsets, got)
		}
	}
}

// TestWordsOfTwoGroupsNeedNoVectors: where the lanes of two groups have whole words of 32 bits, each goes to its lanes
// by itself. More groups, or lanes that have other parts of words, pick from vectors.
func TestWordsOfTwoGroupsNeedNoVectors(t *testing.T) {
	repeated := func(times int, runs ...[]int64) (offsets []int64) {
		for _, run := range runs {
			for range times {
				offsets = append(offsets, run...)
			}
		}
		return offsets
	}
	for _, c := range []struct {
		name    string
		d       array.DType
		offsets []int64
		width   int64 // of words; 0 for vectors
	}{
		{"pairs of bfloat16", array.BFloat16, repeated(8, []int64{0, 1}, []int64{8, 9}), 2},
		{"pairs behind the first", array.BFloat16, repeated(8, []int64{6, 7}, []int64{14, 15}), 2},
		{"four bytes", array.Uint8, repeated(8, []int64{0, 1, 2, 3}, []int64{8, 9, 10, 11}), 4},
		{"whole words of float32", array.Float32, repeated(8, []int64{0}, []int64{8}), 1},
		{"pairs of float32", array.Float32, repeated(4, []int64{0, 1}, []int64{8, 9}), 0},
		{"pairs the other way round", array.BFloat16, repeated(8, []int64{1, 0}, []int64{9, 8}), 0},
		{"four groups", array.BFloat16, repeated(4, []int64{0, 1}, []int64{4, 5}, []int64{8, 9}, []int64{12, 13}), 0},
	} {
		lane := &expr.Var{Name: "k", Extent: int64(len(c.offsets))}
		p := ir.Pick(lane, ir.Flat("t0", c.d, 64), expr.Linear{Const: 16}, c.offsets)
		if p == nil || p.Repeats() != (c.width > 0) || c.width > 0 && (p.Width != c.width || len(p.From) != 2) {
			t.Errorf("%s: %+v", c.name, p)
			continue
		}
		var got []int64
		for _, pick := range p.Picks {
			got = append(got, expr.Linearize(p.From[pick/p.Width].Index[0]).Const+pick%p.Width-16)
		}
		if !slices.Equal(got, c.offsets) {
			t.Errorf("%s: picks %v, want %v", c.name, got, c.offsets)
		}
	}
}
