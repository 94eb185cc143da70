package cost_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// agreement bounds the difference of two costs on points of one kind.
type agreement struct {
	// Nine tenths of the points have a cost by analysis between low and high times that by knobs.
	low, high float64
	// alike is the fraction of pairs of a task's points that both costs order alike, among pairs whose costs by
	// analysis differ by a tenth or more.
	alike float64
}

// agreements holds bounds just outside the observed values. Knobs leave out the time between launches, which is nearly
// the same for all points and most of a map's time, and the caches that hold what several threads read.
var agreements = map[string]agreement{
	"tiles":                 {0.5, 2.7, 0.83},
	"products in matrices":  {0.95, 3.9, 0.88},
	"attention":             {1.6, 3, 0.95},
	"attention in matrices": {0.9, 2.5, 0.8},
	"slices":                {0.2, 2.5, 0.68},
	"windows":               {1.3, 4.1, 0.67},
	"rows":                  {1.9, 6.2, 0.87},
	"maps":                  {8, 21, 0.65},
}

// TestKnobsAndAnalysisCostAlike compares the cost of random points, which searches evaluate by the hundred thousand,
// with the analysis of their programs.
func TestKnobsAndAnalysisCostAlike(t *testing.T) {
	on := describeCard(t)
	rng := rand.New(rand.NewPCG(2, 1))
	seen := map[string][][]sample{}
	for _, name := range []string{"resnet-18", "mobilenet-v2", "bert-small"} {
		for _, storage := range []array.DType{array.Invalid, array.BFloat16} {
			for _, task := range storedTasks(t, name, storage) {
				s := sketch.New(task.Workload, on, schedule.Fast)
				drawn := map[string][]sample{}
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
					drawn[kind] = append(drawn[kind], sample{s.Cost(p), cost.Analyse(f, on.GPU).Total()})
				}
				for kind, list := range drawn {
					seen[kind] = append(seen[kind], list)
				}
			}
		}
	}
	for kind, lists := range seen {
		want, known := agreements[kind]
		low, high := factors(lists)
		alike := ordered(lists)
		if !known || low < want.low || high > want.high || alike < want.alike {
			t.Errorf("%s: nine tenths cost %.2f to %.2f times as much by analysis, and %.3f of the pairs are ordered alike; want %+v", kind, low, high, alike, want)
		}
	}
	for kind := range agreements {
		if len(seen[kind]) == 0 {
			t.Errorf("no %s were drawn", kind)
		}
	}
}

// sample holds both costs of a point.
type sample struct{ byKnobs, byAnalysis float64 }

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

// factors returns the range that contains nine tenths of the points.
func factors(lists [][]sample) (low, high float64) {
	var all []float64
	for _, s := range slices.Concat(lists...) {
		all = append(all, s.byAnalysis/s.byKnobs)
	}
	slices.Sort(all)
	return all[len(all)/20], all[len(all)-1-len(all)/20]
}

// ordered returns the fraction of pairs that are ordered alike.
func ordered(lists [][]sample) float64 {
	pairs, alike := 0.0, 0.0
	for _, list := range lists {
		for k, a := range list {
			for _, b := range list[:k] {
				if math.Abs(math.Log(a.byAnalysis/b.byAnalysis)) < 0.1 {
					continue
				}
				pairs++
				if (a.byKnobs < b.byKnobs) == (a.byAnalysis < b.byAnalysis) {
					alike++
				}
			}
		}
	}
	return alike / max(1, pairs)
}
