package cost_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestKnobsAndAnalysisCostAlike checks that the cost of a point, which searches evaluate by the hundred thousand, and
// the analysis of its program have similar values and order points alike.
func TestKnobsAndAnalysisCostAlike(t *testing.T) {
	on := describeCard(t)
	rng := rand.New(rand.NewPCG(2, 1))
	var ratios []float64
	alike, pairs := 0, 0
	for _, task := range tasks(t, "resnet-18") {
		s := sketch.New(task.Workload, on, schedule.Default)
		type pair struct{ knobs, analysis float64 }
		var points []pair
		for range 12 {
			p, ok := s.Random(rng)
			if !ok {
				continue
			}
			made, err := s.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			f, err := codegen.Outline(made)
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, pair{s.Cost(p), cost.Analyse(f, on.GPU).Total()})
		}
		for k, a := range points {
			ratios = append(ratios, a.analysis/a.knobs)
			for _, b := range points[:k] {
				if math.Abs(math.Log(a.analysis/b.analysis)) < 0.1 {
					continue
				}
				if pairs++; (a.knobs < b.knobs) == (a.analysis < b.analysis) {
					alike++
				}
			}
		}
	}
	slices.Sort(ratios)
	low, high := ratios[len(ratios)/20], ratios[len(ratios)*19/20]
	share := float64(alike) / float64(pairs)
	t.Logf("nine tenths of %d points are %.2f to %.2f times as slow as their knobs say", len(ratios), low, high)
	t.Logf("%.3f of %d pairs are ordered alike", share, pairs)
	if low < 0.35 || high > 6 || share < 0.8 {
		t.Error("they do not agree")
	}
}
