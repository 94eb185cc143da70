package sketch_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// depthwise returns a convolution of each channel of a padded image with a window of its own.
func depthwise(t *testing.T, size, channels int64) *expr.Workload {
	x, w := expr.NewInput("x", array.Float32, size, size, channels), expr.NewConstant("w", array.Float32, 3, 3, channels)
	pad := sketch.Padded(x)
	return sketch.WorkloadOf(t, expr.ReduceOver("y", expr.Sum, []int64{size, size, channels}, []int64{3, 3}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(pad.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), i[2]), w.At(r[0], r[1], i[2]))
	}))
}

// pooling returns the maximum of two by two windows.
func pooling(t *testing.T, size, channels int64) *expr.Workload {
	x := expr.NewInput("x", array.Float32, size, size, channels)
	return sketch.WorkloadOf(t, expr.ReduceOver("y", expr.Maximum, []int64{size / 2, size / 2, channels}, []int64{2, 2}, func(i, r []expr.Expr) expr.Expr {
		return x.At(expr.AddE(expr.MulE(i[0], expr.I(2)), r[0]), expr.AddE(expr.MulE(i[1], expr.I(2)), r[1]), i[2])
	}))
}

// TestCostsOfWindows compares pairs of points. The first took longer on a Cascade Lake, or as long. The ratio of
// costs must be between least and limit rather than match the times.
func TestCostsOfWindows(t *testing.T) {
	window, pool := depthwise(t, 56, 128), pooling(t, 224, 64)
	for _, c := range []struct {
		name        string
		w           *expr.Workload
		dear, cheap string
		min, limit  float64
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
		s := sketch.New(c.w, sketch.Target(t, "x86-64-v4"), schedule.Strict)
		dear, ok := s.Parse(c.dear)
		cheap, fine := s.Parse(c.cheap)
		if !ok || !fine {
			t.Errorf("%s: points are not legal: %v, %v", c.name, ok, fine)
			continue
		}
		if ratio := s.Cost(dear) / s.Cost(cheap); ratio < c.min || ratio > c.limit {
			t.Errorf("%s: costs are %g apart, want %g to %g", c.name, ratio, c.min, c.limit)
		}
	}
}

// TestSpillingTilesCostMore uses 7 x 4 vectors; with the four of a step and one broadcast, they exceed 32 registers by
// one. LLVM spills everything in a loop of two steps, and with four a sum or two, on which all others wait.
func TestSpillingTilesCostMore(t *testing.T) {
	s := sketch.New(kerneltest.Product(t, 3136, 256, 128), sketch.Target(t, "x86-64-v4"), schedule.Strict)
	cost := func(point string) float64 {
		p, ok := s.Parse(point + " hb=14 cb=64 inner=1 outer=1")
		if !ok {
			t.Fatalf("%s is not legal", point)
		}
		return s.Cost(p)
	}
	if two, four := cost("tv=4 tw=7 ku=2"), cost("tv=4 tw=7 ku=4"); two < 1.5*four {
		t.Errorf("two steps cost %g, four %g; measured, they take twice as long", two, four)
	}
	if seven, six := cost("tv=4 tw=7 ku=4"), cost("tv=4 tw=6 ku=4"); seven < 1.05*six {
		t.Errorf("a tile whose sums go through memory costs %g, a smaller one %g; measured, it takes an eighth longer", seven, six)
	}
	if two, four := cost("tv=2 tw=14 ku=2"), cost("tv=2 tw=14 ku=4"); two > 1.1*four {
		t.Errorf("two steps of a tile that fits cost %g, four %g", two, four)
	}
}
