package bench

import (
	"math"
	"testing"
)

func TestGeometricMean(t *testing.T) {
	for want, ratios := range map[float64][]float64{0: nil, 3: {3}, 2: {1, 4}, 1: {0.5, 2, 1}} {
		if got := GeometricMean(ratios); math.Abs(got-want) > 1e-12 {
			t.Errorf("the mean of %v is %g, want %g", ratios, got, want)
		}
	}
}
