package gpusim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// tmaPoint returns a random point with TMA copies of a random product that has such points.
func tmaPoint(t *rapid.T) kerneltest.Case {
	on := played(t)
	if rapid.Bool().Draw(t, "walk") {
		on = small(on, rapid.IntRange(1, 7).Draw(t, "multiprocessors"))
	}
	for {
		w := kerneltest.DrawWarpgroups(t).Merge()
		whole := Backend{}.Space(w, on, schedule.Fast)
		by := rapid.SampledFrom(whole.Algorithms()).Draw(t, "algorithm")
		s, err := whole.Of(by).Restrict(map[string][]int64{"bulk": {1}})
		if err != nil || !strings.HasPrefix(by.Name, "warpgroup") {
			continue // both operands are parts of other tensors, or have partial rows
		}
		p, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0)))
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil {
			t.Fatalf("%s: %v\n%s", s.Format(p), err, w.Text())
		}
		replayed, err := schedule.Replay(w, made.Trace())
		if err != nil {
			t.Fatalf("point %s does not replay: %v\n%s", s.Format(p), err, made.Trace())
		}
		return kerneltest.Case{Workload: w, Schedule: replayed, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Args: kerneltest.Fill(w, 1)}
	}
}

// TestPointsWithTMACopiesAreRight checks that points with TMA copies are as correct as all others, and multiply by
// warpgroup instructions.
func TestPointsWithTMACopiesAreRight(t *testing.T) {
	on := played(t)
	rapid.Check(t, func(rt *rapid.T) {
		cases := kerneltest.Batch(rt, rapid.Custom(tmaPoint), batchSize)
		for _, c := range cases {
			f, err := codegen.Lower(c.Schedule, on.GPU)
			if err != nil {
				rt.Fatalf("does not lower: %v\n%s", err, c.Text())
			}
			if !multiplies(f) || !copiesBoxes(f) {
				rt.Fatalf("no boxes are copied, or matrices multiplied:\n%s\n%s", c.Text(), f.Text())
			}
		}
		check(t, rt, on, cases)
	})
}

func copiesBoxes(f *ir.Func) bool {
	return ir.Any(f.Body, func(c *ir.Call) bool { return c.Starts == nvidia.Boxes })
}

// boxTraces lists schedules with TMA copies that no sketch generates, and their workloads.
var boxTraces = []struct {
	name, workload, trace string
	// needless is set if a barrier is redundant: between stores of results that are disjoint, which is not proved, or
	// because another one follows.
	needless bool
}{
	{"boxes", kerneltest.WarpgroupProduct, kerneltest.WarpgroupBoxes, false},
	{"a box and copies", kerneltest.WarpgroupProduct, kerneltest.WarpgroupBoxAndCopy, false},
	{"a box and halves", kerneltest.WarpgroupProduct, strings.Replace(kerneltest.WarpgroupBoxAndCopy, "vectorize 3 6\n", "", 1), true},
	{"one step", kerneltest.WarpgroupProduct, strings.Replace(kerneltest.WarpgroupBoxes, "split 1 2 16 0", "split 1 2 64 0", 1), false},
	{"two steps", kerneltest.WarpgroupProduct, strings.Replace(kerneltest.WarpgroupBoxes, "split 1 2 16 0", "split 1 2 32 0", 1), false},
	{"a loop", kerneltest.WarpgroupProducts, kerneltest.WarpgroupLoop, false},
	{"one step in a loop", kerneltest.WarpgroupProducts, strings.Replace(kerneltest.WarpgroupLoop, "split 1 3 16 0", "split 1 3 64 0", 1), true},
	{"a tensor in the workspace", kerneltest.WarpgroupAfterMap, kerneltest.WarpgroupBoxesAfterMap(), false},
	{"boxes that threads read", kerneltest.WarpgroupProduct, strings.Replace(kerneltest.WarpgroupBoxes, "tensorize 1 18 7\n", "", 1), false},
}

func boxCase(t testing.TB, workload, trace string) kerneltest.Case {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\n" + workload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
	if err != nil {
		t.Fatal(err)
	}
	return kerneltest.Case{Workload: w, Schedule: s, Workers: 2, Args: kerneltest.Fill(w, 1)}
}

// TestSchedulesWithTMACopiesAreRight covers ring buffers beside those of threads, TMA copies without prefetching,
// mbarriers that are reinitialised repeatedly, and boxes that threads read element by element.
func TestSchedulesWithTMACopiesAreRight(t *testing.T) {
	var cases []kerneltest.Case
	for _, c := range boxTraces {
		cases = append(cases, boxCase(t, c.workload, c.trace))
	}
	check(t, t, played(t), cases)
}

// TestRemovedTMAWaitsAreDetected covers the waits and all synchronisation around them.
func TestRemovedTMAWaitsAreDetected(t *testing.T) {
	for _, c := range boxTraces {
		if c.needless || testing.Short() && c.name != "a box and copies" && c.name != "one step" {
			continue // each program has about ten mutants, all of which are compiled and run
		}
		t.Run(c.name, func(t *testing.T) {
			if n := missed(t, t, played(t), boxCase(t, c.workload, c.trace)); n < 5 {
				t.Errorf("%d statements were removed", n)
			}
		})
	}
}
