package stat

import (
	"math"
	"slices"
)

// Summary holds the usual statistics of samples.
type Summary struct {
	Mean, Median, Min, Max float64
	// StdDev is the sample standard deviation; 0 for a single sample.
	StdDev float64
	Count  int
}

// Of summarises samples. It returns the zero Summary without samples.
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

// GeometricMean returns the geometric mean of positive ratios, or 0 without ratios.
func GeometricMean(ratios []float64) float64 {
	if len(ratios) == 0 {
		return 0
	}
	logs := 0.0
	for _, r := range ratios {
		logs += math.Log(r)
	}
	return math.Exp(logs / float64(len(ratios)))
}

// Quartiles returns the quartiles of samples, interpolated between them, or zeros without samples.
func Quartiles(samples []float64) (low, median, high float64) {
	if len(samples) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := func(share float64) float64 {
		whole, part := math.Modf(share * float64(len(sorted)-1))
		k := int(whole)
		return sorted[k] + part*(sorted[min(k+1, len(sorted)-1)]-sorted[k])
	}
	return at(0.25), at(0.5), at(0.75)
}
