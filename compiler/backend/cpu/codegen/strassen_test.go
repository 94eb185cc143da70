package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// drawStrassen draws a product and a point of its space with Strassen's algorithm, or only the primitive.
func drawStrassen(t *rapid.T, d *target.Target) kerneltest.Case {
	w := kerneltest.DrawProduct(t)
	c := kerneltest.Case{Workload: w, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
	if rapid.IntRange(0, 4).Draw(t, "primitive only") == 0 {
		s := schedule.New(w)
		if _, err := s.Strassen(productStage(s), rapid.Int64Range(1, 20).Draw(t, "group"), rapid.SampledFrom([]schedule.Sums{schedule.Compiled, schedule.Computed}).Draw(t, "sums")); err != nil {
			t.Fatalf("%v\n%s", err, w.Text())
		}
		c.Schedule = s
		return c
	}
	c.Workload = w.Merge()
	c.Args = kerneltest.Fill(c.Workload, 1)
	c.Schedule = drawAlgorithm(t, c.Workload, d)
	return c
}

// productStage returns the number of the summing stage.
func productStage(s *schedule.Schedule) int {
	for _, g := range s.Stages {
		if g.Combiner == expr.Sum {
			return g.ID
		}
	}
	return -1
}

// drawAlgorithm returns the schedule of a point whose algorithm is not the direct sum, if a few draws find one.
func drawAlgorithm(t *rapid.T, w *expr.Workload, d *target.Target) *schedule.Schedule {
	return drawLevel(t, w, d, schedule.Default)
}

// drawLevel draws a point with an algorithm that a level of numerics allows and the previous level does not, if the
// space has one.
func drawLevel(t *rapid.T, w *expr.Workload, d *target.Target, level schedule.Numerics) *schedule.Schedule {
	s := sketch.New(w, d, level)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))
	drawn := schedule.New(w)
	for range 100 {
		if p, ok := s.Random(rng); ok {
			if drawn = applied(t, s, p); drawn.Numerics() == level {
				break
			}
		}
	}
	return drawn
}

// TestStrassenIsRight checks the product for all extents and points of the space.
func TestStrassenIsRight(t *testing.T) {
	checkDrawn(t, quick(modes, "avx512"), batchSize/5, drawStrassen)
}
