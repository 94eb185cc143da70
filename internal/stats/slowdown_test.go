package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// guarded simulates a test on a machine that another process disturbs: ratios scatter by several per cent, and one in
// ten by much more.
func guarded(rng *rand.Rand, ratio float64) string {
	test := SlowdownTest{Threshold: 0.03, Looks: 3}
	var ratios []float64
	for _, n := range []int{16, 32, 64} {
		for len(ratios) < n {
			scatter := 0.02
			if rng.IntN(10) == 0 {
				scatter = 0.3
			}
			ratios = append(ratios, ratio*math.Exp(scatter*rng.NormFloat64()))
		}
		if s := test.Judge(ratios, n == 64); s.Verdict != Undecided {
			return s.Verdict
		}
	}
	return Undecided
}

func TestSlowdownTestKeepsItsErrorProbabilities(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	count := func(runs int, ratio float64, verdict string) float64 {
		n := 0
		for range runs {
			if guarded(rng, ratio) == verdict {
				n++
			}
		}
		return float64(n) / float64(runs)
	}
	runs := 4000
	if !testing.Short() {
		runs = 100_000
	}
	if share := count(runs, 1, Slower); share > FalseAlarm {
		t.Errorf("%.4f of the runs call an equal program slower", share)
	}
	if share := count(runs, 1.03, Slower); share < 1-MissedSlowdown {
		t.Errorf("%.3f of the runs find a slowdown by the threshold", share)
	}
	if share := count(runs, 1, NotSlower); share < 0.95 {
		t.Errorf("%.3f of the runs acquit an equal program", share)
	}
}

// TestMediansOfOddTurnsTakeNoSide checks the ratio of a block: if equal packages swap names, its logarithm changes its
// sign. With an even number of turns, the median is a mean, which is larger than 1 more often.
func TestMediansOfOddTurnsTakeNoSide(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		ratios := make([]float64, 1+2*rng.IntN(4))
		swapped := make([]float64, len(ratios))
		for k := range ratios {
			ratios[k] = math.Exp(0.5 * rng.NormFloat64())
			swapped[k] = 1 / ratios[k]
		}
		if a, b := Of(ratios).Median, Of(swapped).Median; math.Abs(a*b-1) > 1e-12 {
			t.Fatalf("the medians of %v and of the opposite are %v and %v", ratios, a, b)
		}
	}
}

func TestFewRatiosDecideNothing(t *testing.T) {
	for n := range 4 {
		ratios := make([]float64, n)
		for k := range ratios {
			ratios[k] = 2
		}
		if s := (SlowdownTest{Threshold: 0.03, Looks: 1}).Judge(ratios, true); s.Verdict != Undecided {
			t.Errorf("%d ratios: %+v", n, s)
		}
	}
}
