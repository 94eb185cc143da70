package codegen

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// drawPoint draws a workload of the graph compiler's kind, and a legal point of its space.
func drawPoint(t *rapid.T, d *target.Target) kerneltest.Case {
	return casePoint(t, d, kerneltest.DrawWorkload(t).Merge())
}

// casePoint draws a legal point of a workload's space.
func casePoint(t *rapid.T, d *target.Target, w *expr.Workload) kerneltest.Case {
	if rapid.Bool().Draw(t, "small caches") { // these have more points: results may use non-temporal stores
		d = d.Clone()
		d.CPU.L2Bytes, d.CPU.L3Bytes = 256, 512
	}
	s := sketch.New(w, d, schedule.Default)
	point := s.Default()
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))
	if p, ok := s.Random(rng); ok && rapid.IntRange(0, 3).Draw(t, "default") > 0 {
		point = p
	}
	return kerneltest.Case{Workload: w, Schedule: applied(t, s, point), Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Args: kerneltest.Fill(w, 1)}
}

// checkDrawn checks kernels of drawn schedules in each mode, up to size of them at a time.
func checkDrawn(t *testing.T, modes []mode, size int, draw func(t *rapid.T, d *target.Target) kerneltest.Case) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := m.description(t)
			one := rapid.Custom(func(t *rapid.T) kerneltest.Case { return draw(t, d) })
			rapid.Check(t, func(rt *rapid.T) {
				cases := kerneltest.Batch(rt, one, size)
				for _, c := range cases {
					if _, err := NewUnit(d).Add("k", "k", c.Schedule); err != nil {
						rt.Fatalf("does not lower: %v\n%s", err, c.Text())
					}
				}
				checkCases(t, rt, m, cases)
			})
		})
	}
}

// applied returns the schedule of a point, replayed from its trace.
func applied(t *rapid.T, s *searchspace.Space, p searchspace.Point) *schedule.Schedule {
	made, err := s.Apply(p)
	if err != nil {
		t.Fatalf("point %s does not apply: %v\n%s", s.Format(p), err, s.Workload.Text())
	}
	replayed, err := schedule.Replay(s.Workload, made.Trace())
	if err != nil {
		t.Fatalf("point %s does not replay: %v\n%s", s.Format(p), err, made.Trace())
	}
	return replayed
}

// TestEveryPointIsRight checks that points of the space lower, and that their kernels are correct, for any workload.
func TestEveryPointIsRight(t *testing.T) {
	checkDrawn(t, quick(slices.Concat(modes, []mode{sve}), "avx2", "neon"), batchSize, drawPoint)
}

// TestAttentionOfOneRowIsRight covers attention without an axis of rows, in which heads take its place.
func TestAttentionOfOneRowIsRight(t *testing.T) {
	checkDrawn(t, quick([]mode{modes[0], modes[1]}, "avx512"), 6, func(t *rapid.T, d *target.Target) kerneltest.Case {
		return drawPointOf(t, kerneltest.DrawRowOfAttention, d, schedule.Default)
	})
}

// TestMergeKeepsTheMeaning checks that fusing axes of tensors and reductions changes no value.
func TestMergeKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 50 {
			w := kerneltest.DrawWorkload(t)
			args := kerneltest.Fill(w, 1)
			want, err := expr.Evaluate(w, args)
			if err != nil {
				t.Fatal(err)
			}
			merged := w.Merge()
			for k, m := range append(append([]*expr.Tensor{}, merged.Inputs...), merged.Constants...) {
				args[k] = &array.Array{DType: args[k].DType, Shape: m.Shape, Data: args[k].Data}
			}
			got, err := expr.Evaluate(merged, args)
			if err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if !bytes.Equal(got[k].Data, want[k].Data) {
					t.Fatalf("output %d differs\n%s\n%s", k, w.Text(), merged.Text())
				}
			}
		}
	})
}
