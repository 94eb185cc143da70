package runner

import "slices"

// median is the middle of the samples, the mean of the two middle ones when their number is even; 0 when there are none.
func median(samples []float64) float64 {
	n := len(samples)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
