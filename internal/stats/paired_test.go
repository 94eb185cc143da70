package stats

import (
	"math/rand/v2"
	"testing"
)

// TestPairsAreToldApartThroughDrift checks that common changes of the machine's speed neither create nor hide a
// difference.
func TestPairsAreToldApartThroughDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	turns := func(n int, ratio float64) (first, second []float64) {
		for k := range n {
			drift := 1 + 0.5*float64(k)/float64(n)
			first = append(first, drift*(1+0.01*rng.ExpFloat64()))
			second = append(second, drift/ratio*(1+0.01*rng.ExpFloat64()))
		}
		return first, second
	}
	for _, c := range []struct {
		rounds int
		ratio  float64
		want   string
	}{{40, 1.05, Faster}, {40, 1 / 1.05, Slower}, {5, 2, TooFewRounds}, {1, 2, TooFewRounds}, {0, 1, TooFewRounds}} {
		if p := PairedRatio(turns(c.rounds, c.ratio)); p.Verdict() != c.want {
			t.Errorf("%d rounds of a ratio of %.2f are %s: %+v", c.rounds, c.ratio, p.Verdict(), p)
		}
	}
	const runs = 2000
	told := 0
	for range runs {
		if PairedRatio(turns(20, 1)).Verdict() != Noise {
			told++
		}
	}
	if share := float64(told) / runs; share > 1-DecisionLevel+0.01 {
		t.Errorf("equals are told apart in %.3f of the runs", share)
	}
}
