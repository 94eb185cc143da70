package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		want    Interval
	}{
		{"nothing", nil, Interval{}},
		{"one", []float64{3}, Interval{3, 3, 0}},
		{"too few", []float64{3, 1, 2}, Interval{1, 3, 0.75}},
		{"five", []float64{5, 1, 4, 2, 3}, Interval{1, 5, 0.9375}},
		{"eight", []float64{8, 1, 7, 2, 6, 3, 5, 4}, Interval{2, 7, 1 - 18.0/256}},
	} {
		if got := MedianInterval(c.samples); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestMedianIntervalHoldsTheMedianAsOftenAsItSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs = 4000
	for _, n := range []int{2, 5, 10, 25, 60} {
		held, level := 0, 0.0
		for range runs {
			samples := make([]float64, n)
			for i := range samples {
				samples[i] = rng.ExpFloat64()
			}
			got := MedianInterval(samples)
			level = got.Level
			if got.Low <= math.Ln2 && math.Ln2 <= got.High {
				held++
			}
		}
		if share := float64(held) / runs; math.Abs(share-level) > 0.02 {
			t.Errorf("%d samples: %.3f of the intervals hold the median, they say %.3f", n, share, level)
		}
	}
}
