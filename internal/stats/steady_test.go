package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSteadyIsBlindToWhatLengthensSomeSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, disturbed := range []float64{0, 0.3} {
		samples := make([]float64, 2001)
		for i := range samples {
			samples[i] = 1 + 0.01*rng.NormFloat64()
			if rng.Float64() < disturbed {
				samples[i] += rng.ExpFloat64()
			}
		}
		low, noise := Steady(samples)
		if math.Abs(low-0.994) > 0.004 || noise < 0.007 || noise > 0.02 {
			t.Errorf("with %g of the samples disturbed: lower quartile %g, noise %g", disturbed, low, noise)
		}
	}
	if low, noise := Steady(nil); low != 0 || noise != 0 {
		t.Errorf("of nothing: %g, %g", low, noise)
	}
}
