package space

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// depthwise is a convolution of each channel of a padded image with a window of its own.
func depthwise(t *testing.T, size, channels int64) *expr.Workload {
	x, w := expr.NewInput("x", array.Float32, size, size, channels), expr.NewConstant("w", array.Float32, 3, 3, channels)
	pad := expr.Compute("pad", []int64{size + 2, size + 2, channels}, func(i []expr.Expr) expr.Expr {
		r, c := expr.SubE(i[0], expr.I(1)), expr.SubE(i[1], expr.I(1))
		inside := expr.Bin(expr.And, expr.InRange(r, 0, size), expr.InRange(c, 0, size))
		return expr.Sel(inside, x.At(r, c, i[2]), expr.F(array.Float32, 0))
	})
	return workloadOf(t, expr.ReduceOver("y", expr.Sum, []int64{size, size, channels}, []int64{3, 3}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(pad.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), i[2]), w.At(r[0], r[1], i[2]))
	}))
}

// pooling is the maximum of windows of two by two.
func pooling(t *testing.T, size, channels int64) *expr.Workload {
	x := expr.NewInput("x", array.Float32, size, size, channels)
	return workloadOf(t, expr.ReduceOver("y", expr.Maximum, []int64{size / 2, size / 2, channels}, []int64{2, 2}, func(i, r []expr.Expr) expr.Expr {
		return x.At(expr.AddE(expr.MulE(i[0], expr.I(2)), r[0]), expr.AddE(expr.MulE(i[1], expr.I(2)), r[1]), i[2])
	}))
}

// TestCostsOfWindows compares what was measured, on a Cascade Lake, to differ by the factors that the comments say.
func TestCostsOfWindows(t *testing.T) {
	window, pool := depthwise(t, 56, 128), pooling(t, 224, 64)
	for _, c := range []struct {
		name         string
		w            *expr.Workload
		dear, cheap  string
		least, limit float64
	}{
		{"padding within tiles that cross rows is that of whole rows", window,
			"tv=1 tw=6 th=1 hb=56 cb=64 outer=1 inner=0 ku=9 pf=0 joint=1 feed=3", "tv=1 tw=7 th=1 hb=56 cb=64 outer=1 inner=0 ku=9 pf=0 joint=1 feed=3", 3, 40},
		{"tiles that stay in a row are those of rows", window,
			"tv=1 tw=7 th=1 hb=56 cb=64 outer=1 inner=0 ku=9 pf=0 joint=1 feed=0", "tv=1 tw=7 th=1 hb=7 cb=64 outer=1 inner=0 ku=9 pf=0 joint=0 feed=0", 0.8, 1.2},
		{"tiles that cross rows check each position", window,
			"tv=1 tw=6 th=1 hb=56 cb=64 outer=1 inner=0 ku=9 pf=0 joint=1 feed=0", "tv=1 tw=7 th=1 hb=56 cb=64 outer=1 inner=0 ku=9 pf=0 joint=1 feed=0", 1.5, 8},
		{"lines that lie apart come more slowly", pool,
			"tv=1 tw=1 th=2 hb=8 cb=1 outer=1 inner=1 ku=4", "tv=4 tw=1 th=2 hb=8 cb=1 outer=1 inner=1 ku=4", 1.1, 3},
	} {
		s := New(c.w, parseTarget(t, "x86-64-v4"), schedule.Strict)
		dear, ok := s.Parse(c.dear)
		cheap, fine := s.Parse(c.cheap)
		if !ok || !fine {
			t.Errorf("%s: points are not legal: %v, %v", c.name, ok, fine)
			continue
		}
		if ratio := s.Cost(dear) / s.Cost(cheap); ratio < c.least || ratio > c.limit {
			t.Errorf("%s: costs are %g apart, want %g to %g", c.name, ratio, c.least, c.limit)
		}
	}
}
