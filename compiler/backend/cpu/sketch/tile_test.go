package sketch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

func TestStridedOperandIsVectorizedThroughAPanel(t *testing.T) {
	s := sketch.New(sketch.Keys(t), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	applied, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if trace := string(applied.Trace()); !strings.Contains(trace, "\ncache-read ") {
		t.Errorf("the default does not copy a panel:\n%s", trace)
	}
}

func TestChannelsOfAGroupShareTheirInputs(t *testing.T) {
	const size, groups, in, out = 14, 4, 16, 32
	x, w := expr.NewInput("x", array.Float32, size, size, groups*in), expr.NewConstant("w", array.Float32, in, groups*out)
	c := expr.ReduceOver("conv", expr.Sum, []int64{size, size, groups * out}, []int64{in}, func(i, r []expr.Expr) expr.Expr {
		group := expr.Bin(expr.FloorDiv, i[2], expr.I(out))
		return expr.MulE(x.At(i[0], i[1], expr.AddE(expr.MulE(group, expr.I(in)), r[0])), w.At(r[0], i[2]))
	})
	s := sketch.New(sketch.WorkloadOf(t, c), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	p, ok := s.Parse("tv=3 tw=4")
	if err := s.Legal(p); ok || err == nil || !strings.Contains(err.Error(), "groups of 32 channels") {
		t.Errorf("a tile of 24 channels in groups of 32: %v", err)
	}
}

// TestGroupsNarrowerThanAVectorAreComputedInVectors checks that a tile starts at a group boundary, and that each
// channel of a window is picked once for all its columns.
func TestGroupsNarrowerThanAVectorAreComputedInVectors(t *testing.T) {
	for _, c := range []struct{ channels, groups, vectors int64 }{{4, 32, 1}, {8, 13, 1}, {2, 20, 1}, {3, 16, 3}, {6, 8, 3}, {20, 4, 5}} {
		const size, kernel = 14, 3
		x := expr.NewInput("x", array.Float32, size, size+kernel-1, c.groups*c.channels)
		w := expr.NewConstant("w", array.Float32, kernel, c.channels, c.groups*c.channels)
		conv := expr.ReduceOver("conv", expr.Sum, []int64{size, size, c.groups * c.channels}, []int64{kernel, c.channels}, func(i, r []expr.Expr) expr.Expr {
			group := expr.Bin(expr.FloorDiv, i[2], expr.I(c.channels))
			channel := expr.AddE(expr.MulE(group, expr.I(c.channels)), r[1])
			return expr.MulE(x.At(i[0], expr.AddE(i[1], r[0]), channel), w.At(r[0], r[1], i[2]))
		})
		s := sketch.New(sketch.WorkloadOf(t, conv), sketch.Target(t, "x86-64-v4"), schedule.Strict)
		p, ok := s.Parse(fmt.Sprintf("tv=%d tw=2 th=1", c.vectors))
		if !ok {
			t.Errorf("%d groups of %d channels: %v", c.groups, c.channels, s.Legal(p))
			continue
		}
		applied, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		if trace := string(applied.Trace()); !strings.Contains(trace, "\nsplit 1 2 16 ") {
			t.Errorf("%d groups of %d channels are not computed in vectors of 16:\n%s", c.groups, c.channels, trace)
		}
	}
}

// TestPositionsThatShareSetsOfACacheCost checks that with 512 channels and a stride of two, neighbours read lines a
// page apart, and 14 such lines exceed a cache with 8 ways. With 528 channels they do not.
func TestPositionsThatShareSetsOfACacheCost(t *testing.T) {
	wider := func(channels int64) float64 {
		x, w := expr.NewInput("x", array.Float32, 28, channels), expr.NewConstant("w", array.Float32, 16, channels)
		c := expr.ReduceOver("conv", expr.Sum, []int64{14, channels}, []int64{16}, func(i, r []expr.Expr) expr.Expr {
			group := expr.MulE(expr.Bin(expr.FloorDiv, i[1], expr.I(16)), expr.I(16))
			return expr.MulE(x.At(expr.MulE(i[0], expr.I(2)), expr.AddE(group, r[0])), w.At(r[0], i[1]))
		})
		s := sketch.New(sketch.WorkloadOf(t, c), sketch.Target(t, "x86-64-v4"), schedule.Strict)
		cost := func(columns int) float64 {
			p, ok := s.Parse(fmt.Sprintf("tv=1 tw=%d hb=1 cb=1 outer=0 inner=0 ku=8", columns))
			if !ok {
				t.Fatalf("%d columns are not legal", columns)
			}
			return s.Cost(p)
		}
		return cost(14) / cost(7)
	}
	if even, odd := wider(512), wider(528); even < 1.2*odd {
		t.Errorf("with 512 channels 14 positions cost %.2f times as much as 7, with 528 %.2f times", even, odd)
	}
}

// TestCostPrefersTilesThatKeepTheUnitsBusy checks that a tile that fits the registers and divides the image does
// not lose to one that does neither.
func TestCostPrefersTilesThatKeepTheUnitsBusy(t *testing.T) {
	s := sketch.New(sketch.Conv(t, 56, 64), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	cost := func(point string) float64 {
		p, ok := s.Parse(point + " hb=4 cb=64 inner=1 ku=4 feed=2")
		if !ok {
			t.Fatalf("%s is not legal", point)
		}
		return s.Cost(p)
	}
	order := []string{"tv=2 tw=3 th=2", "tv=1 tw=14 th=1", "tv=1 tw=4 th=1", "tv=1 tw=1 th=1"}
	for k, point := range order[1:] {
		if better := order[k]; cost(better) >= cost(point) {
			t.Errorf("%s costs %.4g, %s %.4g; it is measured to be faster", better, cost(better), point, cost(point))
		}
	}
}

// TestEpilogueTrafficIsCounted checks that reads and stores of the maps after a reduction count as cache traffic, too.
func TestEpilogueTrafficIsCounted(t *testing.T) {
	const sum = `tilth-workload 1
input t0 f32[3136,64]
input t1 f32[3136,256]
constant t2 f32[64,256]
sum t3 f32[3136,256] over 64 = (mul [t0 i0 r0] [t2 r0 i1])
`
	plain := sum + "map t4 f32[3136,256] = (max [t3 i0 i1] [t1 i1])\noutput t4\n"
	residual := sum + "map t4 f32[3136,256] = (add [t3 i0 i1] [t1 i0 i1])\noutput t4\n"
	twice := sum + "map t4 f32[3136,256] = (add [t3 i0 i1] [t1 i0 i1])\nmap t5 f32[3136,256] = (max [t4 i0 i1] 0x0p+00:f32)\noutput t4 t5\n"
	last := 0.0
	for k, text := range []string{strings.NewReplacer("input t1 f32[3136,256]", "constant t1 f32[256]").Replace(plain), residual, twice} {
		w, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s := sketch.New(w, sketch.Target(t, "x86-64-v3"), schedule.Strict)
		p, ok := s.Parse("tv=2 tw=6 hb=14 cb=4 ku=4")
		if !ok {
			t.Fatalf("%s is not legal", s.Format(p))
		}
		if cost := s.Cost(p); cost <= last {
			t.Errorf("cost %g with %d accesses at the end, %g with one less", cost, k, last)
		} else {
			last = cost
		}
	}
}

// TestProductOfOneRowDoesNotPrefetch exists because a product of one row only reads its weights, which hardware
// prefetching does as fast as possible. One of many rows has time to prefetch them.
func TestProductOfOneRowDoesNotPrefetch(t *testing.T) {
	for rows, prefetches := range map[int64]bool{1: false, 2: false, 35: true} {
		x, w := expr.NewInput("x", array.Float32, rows, 650), expr.NewConstant("w", array.Float32, 650, 2600)
		out := expr.ReduceOver("y", expr.Sum, []int64{rows, 2600}, []int64{650}, func(i, r []expr.Expr) expr.Expr {
			return expr.MulE(x.At(i[0], r[0]), w.At(r[0], i[1]))
		})
		s := sketch.New(sketch.WorkloadOf(t, out), sketch.Target(t, "x86-64-v3"), schedule.Strict)
		if point := s.Format(s.Default()); strings.Contains(point, "pf=0") == prefetches {
			t.Errorf("%d rows: the default is %s", rows, point)
		}
	}
}

// TestGroupsOfAnyWidthAreComputedInVectors checks that groups wider than a vector are tiles of their own if vectors
// across groups would pick more often, and that groups of one channel with a few inputs are picked from vectors.
func TestGroupsOfAnyWidthAreComputedInVectors(t *testing.T) {
	for _, c := range []struct{ in, out, groups, width int64 }{{17, 68, 4, 68}, {80, 20, 3, 20}, {4, 1, 32, 16}, {8, 12, 8, 48}} {
		const size = 14
		x, w := expr.NewInput("x", array.Float32, size, size, c.groups*c.in), expr.NewConstant("w", array.Float32, c.in, c.groups*c.out)
		conv := expr.ReduceOver("conv", expr.Sum, []int64{size, size, c.groups * c.out}, []int64{c.in}, func(i, r []expr.Expr) expr.Expr {
			group := expr.Bin(expr.FloorDiv, i[2], expr.I(c.out))
			if c.out == 1 {
				group = i[2]
			}
			return expr.MulE(x.At(i[0], i[1], expr.AddE(expr.MulE(group, expr.I(c.in)), r[0])), w.At(r[0], i[2]))
		})
		s := sketch.New(sketch.WorkloadOf(t, conv), sketch.Target(t, "x86-64-v4"), schedule.Strict)
		p, ok := s.Parse("tv=1 tw=2 th=1")
		if !ok {
			t.Errorf("%d groups of %d channels: %v", c.groups, c.out, s.Legal(p))
			continue
		}
		applied, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		trace := string(applied.Trace())
		if !strings.Contains(trace, "\nsplit 1 2 16 ") || !strings.Contains(trace, fmt.Sprintf("\nsplit 0 2 %d ", c.width)) {
			t.Errorf("%d groups of %d channels are not computed in vectors of 16, %d channels at a time:\n%s", c.groups, c.out, c.width, trace)
		}
	}
}
