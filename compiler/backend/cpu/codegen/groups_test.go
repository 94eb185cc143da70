package codegen

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	model "github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"pgregory.net/rapid"
)

// TestGroupsOfEveryWidthAreRight covers vectors that cross groups and pick their lanes from several, including at
// borders.
func TestGroupsOfEveryWidthAreRight(t *testing.T) {
	for _, m := range quick(slices.Concat(modes, dotModes, pairModes[:1]), "avx2", "dotprod") {
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
				checkCases(t, rt, m, kerneltest.Batch(rt, draw, 4))
			})
		})
	}
}

// TestGroupsOfEveryWidthHaveADefault includes groups whose channels take exactly as many whole and partial vectors as
// there are registers beside one for the operand.
func TestGroupsOfEveryWidthHaveADefault(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 21 // 1, 22, 43, 64
	}
	for _, name := range []string{"x86-64-v3", "x86-64-v4", "arm64"} {
		on, err := target.Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		for width := int64(1); width <= 64; width += step {
			for _, in := range []int64{1, 4, width} {
				m := model.New().Input("x", 1, 3*in, 6, 7).Constant("w", 3*width, in, 3, 3).
					Node("y = Conv x w", model.Same3x3, model.Int("group", 3)).Output("y")
				for _, task := range model.Import(t, m).Tasks {
					s := sketch.New(task.Workload, on, schedule.Default)
					if _, err := s.Apply(s.Default()); err != nil {
						t.Errorf("%s, %d channels of %d in a group: %v", name, width, in, err)
					}
				}
			}
		}
	}
}
