package cost_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// agreements holds bounds just outside the observed values. Knobs leave out the time between launches, which is nearly
// the same for all points and most of a map's time, and the caches that hold what several threads read.
var agreements = map[string]kerneltest.Agreement{
	"tiles":                 {Low: 0.5, High: 2.7, Alike: 0.83},
	"products in matrices":  {Low: 0.95, High: 3.9, Alike: 0.88},
	"attention":             {Low: 1.6, High: 3, Alike: 0.95},
	"attention in matrices": {Low: 0.9, High: 2.5, Alike: 0.8},
	"slices":                {Low: 0.2, High: 2.5, Alike: 0.65},
	"windows":               {Low: 1.3, High: 4.1, Alike: 0.67},
	"rows":                  {Low: 1.9, High: 6.2, Alike: 0.87},
	"maps":                  {Low: 8, High: 21, Alike: 0.65},
}

// TestKnobsAndAnalysisCostAlike compares the cost of random points, which searches evaluate by the hundred thousand,
// with the analysis of their programs.
func TestKnobsAndAnalysisCostAlike(t *testing.T) {
	on := describeCard(t)
	rng := rand.New(rand.NewPCG(2, 1))
	seen := map[string][][]kerneltest.Prices{}
	for _, name := range []string{"resnet-18", "mobilenet-v2", "bert-small"} {
		for _, storage := range []array.DType{array.Invalid, array.BFloat16} {
			for _, task := range storedTasks(t, name, storage) {
				s := sketch.New(task.Workload, on, schedule.Fast)
				drawn := map[string][]kerneltest.Prices{}
				for _, p := range s.Draws(rng, 12) {
					made, err := s.Apply(p)
					if err != nil {
						t.Fatal(err)
					}
					f, err := codegen.Outline(made)
					if err != nil {
						t.Fatal(err)
					}
					kind := kindOf(s, p)
					drawn[kind] = append(drawn[kind], kerneltest.Prices{Knobs: s.Cost(p), Analysis: cost.Analyse(f, on.GPU).Total()})
				}
				for kind, list := range drawn {
					seen[kind] = append(seen[kind], list)
				}
			}
		}
	}
	kerneltest.CheckAgreement(t, agreements, seen)
}

// kindOf names a point by its algorithm and its knobs.
func kindOf(s *searchspace.Space, p searchspace.Point) string {
	has := func(names ...string) bool {
		for k, knob := range s.Knobs {
			if s.Active(p, k) && slices.Contains(names, knob.Name) {
				return true
			}
		}
		return false
	}
	direct := s.Algorithm(p) == searchspace.Direct
	switch {
	case has("piece") && direct:
		return "attention"
	case has("piece"):
		return "attention in matrices"
	case has("side", "across"):
		return "slices"
	case has("items"):
		return "maps"
	case has("threads") && has("tall", "wide"):
		return "windows"
	case has("threads"):
		return "rows"
	case !direct:
		return "products in matrices"
	}
	return "tiles"
}
