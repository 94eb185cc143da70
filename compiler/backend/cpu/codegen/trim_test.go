package codegen

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestRowsOfPaddingAreLeftOut checks sums whose loops omit rows of a window, for any size, strides, dilation and
// padding. Points are redrawn until one omits some rows.
func TestRowsOfPaddingAreLeftOut(t *testing.T) {
	left := 0
	checkDrawn(t, quick(slices.Concat(modes, dotModes[:1], pairModes[:1]), "avx2"), 6, func(t *rapid.T, d *target.Target) kerneltest.Case {
		draw := kerneltest.DrawConv
		if rapid.Bool().Draw(t, "groups") {
			draw = kerneltest.DrawGroups
		}
		w := draw(t).Merge()
		s := sketch.New(w, d, schedule.Strict)
		made := applied(t, s, s.Default())
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))
		for range 20 {
			if bytes.Contains(made.Trace(), []byte("\ntrim ")) {
				left++
				break
			}
			if p, ok := s.Random(random); ok {
				made = applied(t, s, p)
			}
		}
		return kerneltest.Case{Workload: w, Schedule: made, Workers: rapid.IntRange(1, 2).Draw(t, "workers"),
			Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
	})
	if left == 0 {
		t.Error("no schedule leaves any out")
	}
}
