// Package stat sums up samples.
package stat

import (
	"math"
	"slices"
)

// Summary describes samples by the figures people compare.
type Summary struct {
	Mean, Median, Min, Max float64
	// StdDev is the sample standard deviation; 0 for a single sample.
	StdDev float64
	Count  int
}

// Of sums up samples; it is all zero when there are none.
func Of(samples []float64) Summary {
	n := len(samples)
	if n == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	s := Summary{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Count: n}
	for _, v := range sorted {
		s.Mean += v / float64(n)
	}
	if n > 1 {
		sum := 0.0
		for _, v := range sorted {
			sum += (v - s.Mean) * (v - s.Mean)
		}
		s.StdDev = math.Sqrt(sum / float64(n-1))
	}
	return s
}
