package gpusim

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// small returns the GPU with few multiprocessors, so that small results have more tiles than blocks.
func small(on *target.Target, multiprocessors int) *target.Target {
	c := on.Clone()
	gpu := *on.GPU
	gpu.Multiprocessors = multiprocessors
	c.GPU = &gpu
	return c
}

// drawWalk draws a product or a convolution for persistent blocks.
func drawWalk(t *rapid.T) *expr.Workload {
	return rapid.SampledFrom([]func(*rapid.T) *expr.Workload{
		kerneltest.DrawProduct, kerneltest.DrawConv, kerneltest.DrawMatrices, kerneltest.DrawWarpgroups, kerneltest.DrawGroups,
	}).Draw(t, "kind")(t)
}

// persistentPoint returns a point with persistent blocks, bands or Stream-K sums, if some tries find one.
func persistentPoint(t *rapid.T, w *expr.Workload, on *target.Target) (c kerneltest.Case) {
	on = small(on, rapid.IntRange(1, 7).Draw(t, "multiprocessors"))
	wanted := rapid.SampledFrom([]string{"persist ", "raster ", "streamk ", "streamk "}).Draw(t, "wanted")
	for range 12 {
		if c = drawn(t, w, on); strings.Contains(string(c.Schedule.Trace()), wanted) {
			break
		}
	}
	return c
}

// TestPersistentBlocksAreRight checks, for all workloads and points, that persistent blocks compute all tiles, with
// and without bands, and that Stream-K shares add up to the evaluator's result.
func TestPersistentBlocksAreRight(t *testing.T) {
	on := played(t)
	one := rapid.Custom(func(t *rapid.T) kerneltest.Case { return persistentPoint(t, drawWalk(t).Merge(), on) })
	rapid.Check(t, func(rt *rapid.T) {
		check(t, rt, on, kerneltest.Batch(rt, one, batchSize))
	})
}

// TestRemovedBarriersBetweenTilesAreDetected checks that each barrier, fence and wait of persistent blocks is needed,
// for tiles of four steps, with and without ring buffers and Stream-K sums.
func TestRemovedBarriersBetweenTilesAreDetected(t *testing.T) {
	on := small(played(t), 2)
	w, err := expr.Parse("tilth-workload 1\ninput t0 f16[192,64]\ninput t1 f16[64,32]\n" +
		"sum t2 f32[192,32] over 64 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))\noutput t2\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		algorithm string
		knobs     map[string]int64
		cuts      map[int64]int64 // by the number of stages
	}{
		{"direct", map[string]int64{"tall": 16, "rows": 4, "wide": 8, "columns": 4, "depth": 16, "unroll": 4, "vector": 4, "parts": 1}, map[int64]int64{1: 1, 3: 0}},
		{"F16", map[string]int64{"tall": 4, "rows": 1, "wide": 1, "columns": 4, "depth": 1}, map[int64]int64{1: 1, 3: 0}},
		{"warpgroup F16", map[string]int64{"tall": 1, "rows": 1, "wide": 1, "columns": 4, "depth": 1, "bulk": 0}, map[int64]int64{1: 1, 3: 0}},
		{"warpgroup F16", map[string]int64{"tall": 1, "rows": 1, "wide": 1, "columns": 4, "depth": 1, "bulk": 1}, map[int64]int64{2: 1, 3: 0}},
	} {
		algorithm, knobs := x.algorithm, x.knobs
		for stages, cut := range x.cuts {
			if testing.Short() && (algorithm != "direct" || stages != 1) {
				continue // each program has tens of mutants
			}
			knobs["stages"], knobs["cut"], knobs["walkers"], knobs["band"] = stages, cut, 1, 1
			made := scheduled(t, w, on, algorithm, knobs)
			c := kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
			if n := missed(t, t, on, c); n == 0 || !isPersistent(made) {
				t.Errorf("%s: %d barriers, fences and waits in\n%s", algorithm, n, made.Trace())
			}
		}
	}
}

// scheduled returns the schedule of a point by its knobs.
func scheduled(t *testing.T, w *expr.Workload, on *target.Target, algorithm string, knobs map[string]int64) *schedule.Schedule {
	t.Helper()
	s := Backend{}.Space(w, on, schedule.Strict)
	by := slices.IndexFunc(s.Algorithms(), func(a searchspace.Algorithm) bool { return a.Name == algorithm })
	s = s.Of(s.Algorithms()[by])
	p := s.Default()
	for k, knob := range s.Knobs {
		if v, ok := knobs[knob.Name]; ok && s.Active(p, k) {
			p[k] = slices.Index(knob.Values, v)
		}
	}
	if err := s.Legal(p); err != nil {
		t.Fatal(err)
	}
	made, err := s.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestMutatedPersistentSchedulesAreRightOrRefused checks arbitrary trace lines about persistent blocks and Stream-K
// sums: the kernel agrees with the evaluator, or lowering returns an error.
func TestMutatedPersistentSchedulesAreRightOrRefused(t *testing.T) {
	on := played(t)
	rapid.Check(t, func(rt *rapid.T) {
		cases := kerneltest.Batch(rt, rapid.Custom(kerneltest.DrawTiled), batchSize)
		check(t, rt, on, slices.DeleteFunc(cases, func(c kerneltest.Case) bool {
			_, err := newUnit(on).AddWithPacks("k", "k", c.Schedule)
			return err != nil
		}))
	})
}
