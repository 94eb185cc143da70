package codegen

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// drawWinograd draws a convolution and a point of its space with Winograd's algorithm, or only the primitive.
func drawWinograd(t *rapid.T, d *target.Target) kerneltest.Case {
	return drawWinogradOf(t, d, kerneltest.DrawConv(t))
}

func drawWinogradOf(t *rapid.T, d *target.Target, w *expr.Workload) kerneltest.Case {
	c := kerneltest.Case{Workload: w, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
	if rapid.IntRange(0, 4).Draw(t, "primitive only") == 0 {
		s := schedule.New(w)
		outputs := rapid.Int64Range(2, 4)
		conv := slices.IndexFunc(s.Stages, func(g *schedule.Stage) bool { return len(g.Reduce) > 0 })
		if _, err := s.Winograd(conv, outputs.Draw(t, "my"), outputs.Draw(t, "mx")); err == nil {
			c.Schedule = s
			return c
		}
	}
	c.Workload = w.Merge()
	c.Args = kerneltest.Fill(c.Workload, 1)
	c.Schedule = drawAlgorithm(t, c.Workload, d)
	return c
}

// TestWinogradIsRight checks the convolution for all shapes, algorithms and points of the space.
func TestWinogradIsRight(t *testing.T) {
	checkDrawn(t, quick(modes, "avx2"), batchSize/5, drawWinograd)
}

// TestWinogradOfOpenImagesIsRight does the same for images whose height and width an execution chooses, with NaN
// beyond them.
func TestWinogradOfOpenImagesIsRight(t *testing.T) {
	checkDrawn(t, quick(modes, "avx2"), batchSize/5, func(t *rapid.T, d *target.Target) kerneltest.Case {
		return drawWinogradOf(t, d, kerneltest.DrawOpenConv(t))
	})
}

// TestWinogradInPairsIsRight covers products with rounded factors.
func TestWinogradInPairsIsRight(t *testing.T) {
	for _, m := range quick(pairModes, "avx512bf16") {
		t.Run(m.name, func(t *testing.T) {
			d, rounds := m.description(t), 0
			draw := rapid.Custom(func(t *rapid.T) kerneltest.Case {
				w := rapid.SampledFrom([]func(*rapid.T) *expr.Workload{kerneltest.DrawConv, kerneltest.DrawNarrowProduct}).Draw(t, "family")(t).Merge()
				s := drawLevel(t, w, d, schedule.Fast)
				if s.Numerics() == schedule.Fast {
					rounds++
				}
				return kerneltest.Case{Workload: w, Schedule: s, Workers: rapid.IntRange(1, 2).Draw(t, "workers"), Args: kerneltest.Fill(w, 1)}
			})
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, rapid.SliceOfN(draw, 6, 8).Draw(rt, "cases"))
			})
			if rounds == 0 {
				t.Error("no kernel rounds factors")
			}
		})
	}
}
