package codegen

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// TestGroupsOfEveryWidthAreRight: vectors that are no part of a group pick their lanes from what several read, at
// borders as elsewhere.
func TestGroupsOfEveryWidthAreRight(t *testing.T) {
	for _, m := range slices.Concat(modes, dotModes, pairModes[:1]) {
		t.Run(m.name, func(t *testing.T) {
			d := m.description(t)
			draw := rapid.Custom(func(t *rapid.T) kerneltest.Case {
				w := kerneltest.DrawGroups(t).Merge()
				s := sketch.New(w, d, schedule.Strict)
				p := s.Default()
				if q, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok && rapid.Bool().Draw(t, "random") {
					p = q
				}
				return kerneltest.Case{Workload: w, Schedule: applied(t, s, p), Workers: rapid.IntRange(1, 2).Draw(t, "workers"),
					Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
			})
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, rapid.SliceOfN(draw, 1, 4).Draw(rt, "cases"))
			})
		})
	}
}
