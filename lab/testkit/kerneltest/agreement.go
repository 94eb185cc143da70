package kerneltest

import (
	"math"
	"slices"
	"testing"
)

// Prices holds the cost of a point of a space by its knobs, and by an analysis of its schedule.
type Prices struct{ Knobs, Analysis float64 }

// Agreement bounds the difference of the two costs on points of one kind.
type Agreement struct {
	// Nine tenths of the points have a cost by analysis between Low and High times that by knobs.
	Low, High float64
	// Alike is the fraction of pairs of a task's points that both costs order alike, among pairs whose costs by knobs
	// differ by a fifth or more.
	Alike float64
}

// CheckAgreement checks the prices of each kind of points, by task, against its bounds. Each kind must occur.
func CheckAgreement(t *testing.T, bounds map[string]Agreement, seen map[string][][]Prices) {
	t.Helper()
	for kind, tasks := range seen {
		want, known := bounds[kind]
		got := agreementOf(tasks)
		if !known || got.Low < want.Low || got.High > want.High || got.Alike < want.Alike {
			t.Errorf("%s: nine tenths cost %.2f to %.2f times as much by analysis, and %.3f of the pairs are ordered alike; want %+v",
				kind, got.Low, got.High, got.Alike, want)
		}
	}
	for kind := range bounds {
		if len(seen[kind]) == 0 {
			t.Errorf("no %s were drawn", kind)
		}
	}
}

func agreementOf(tasks [][]Prices) Agreement {
	var ratios []float64
	pairs, alike := 0.0, 0.0
	for _, list := range tasks {
		for k, a := range list {
			ratios = append(ratios, a.Analysis/a.Knobs)
			for _, b := range list[:k] {
				if math.Abs(math.Log(a.Knobs/b.Knobs)) < math.Log(1.2) {
					continue
				}
				pairs++
				if (a.Knobs < b.Knobs) == (a.Analysis < b.Analysis) {
					alike++
				}
			}
		}
	}
	slices.Sort(ratios)
	n := len(ratios)
	return Agreement{ratios[n/20], ratios[n-1-n/20], alike / max(1, pairs)}
}
