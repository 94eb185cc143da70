package stats

import "slices"

// Interval contains the median of the underlying distribution with probability Level.
type Interval struct{ Low, High, Level float64 }

// LatencyLevel is the usual level of latency intervals.
const LatencyLevel = 0.9

// MedianInterval returns the narrowest pair of order statistics that contains the median with a probability
// of at least 0.9, or the range of the samples if there are too few. It assumes independent samples of any
// distribution: each is below the median with probability 1/2 (David and Nagaraja, Order Statistics, section
// 7.1). It returns zeros without samples.
func MedianInterval(samples []float64) Interval { return MedianIntervalAt(samples, LatencyLevel) }

// MedianIntervalAt is MedianInterval with a probability of at least level.
func MedianIntervalAt(samples []float64, level float64) Interval {
	n := len(samples)
	if n == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	best := Interval{sorted[0], sorted[n-1], coverage(n, 0)}
	for k := 1; k < n-1-k; k++ {
		held := coverage(n, k)
		if held < level {
			break
		}
		best = Interval{sorted[k], sorted[n-1-k], held}
	}
	return best
}

// coverage returns the probability that the median is between the k-th smallest and the k-th largest of n
// samples, counted from 0.
func coverage(n, k int) float64 {
	// term is the probability of exactly i samples below the median.
	term, below := 1.0, 0.0
	for range n {
		term /= 2
	}
	for i := range k + 1 {
		below += term
		term *= float64(n-i) / float64(i+1)
	}
	return max(0, 1-2*below)
}

// DecisionLevel is the level of intervals on which decisions are based.
const DecisionLevel = 0.95

// Paired compares two alternatives that were timed in turns.
type Paired struct {
	// Ratio is the median over the turns of the first time divided by the second: above 1, the second is faster.
	Ratio float64 `json:"speed_up"`
	// Low and High bound the median ratio with a probability of RatioLevel.
	Low        float64 `json:"speed_up_low"`
	High       float64 `json:"speed_up_high"`
	RatioLevel float64 `json:"speed_up_level"`
}

// PairedRatio compares samples taken in turns. The k-th samples of both are adjacent in time, so disturbances of the
// machine affect both and cancel in their ratio. The interval is that of the sign test on the ratios, by order
// statistics (see MedianInterval). It assumes independent turns of any distribution. Incomplete turns are ignored.
func PairedRatio(first, second []float64) Paired {
	var ratios []float64
	for k := range min(len(first), len(second)) {
		if second[k] > 0 {
			ratios = append(ratios, first[k]/second[k])
		}
	}
	i := MedianIntervalAt(ratios, DecisionLevel)
	return Paired{Ratio: Of(ratios).Median, Low: i.Low, High: i.High, RatioLevel: i.Level}
}

// Verdicts on a pair.
const (
	Faster       = "faster"
	Slower       = "slower"
	Noise        = "noise"
	TooFewRounds = "too few rounds"
)

// Verdict judges the second alternative at DecisionLevel. A difference whose interval contains none is noise.
func (p Paired) Verdict() string {
	switch {
	case p.RatioLevel < DecisionLevel:
		return TooFewRounds
	case p.Low > 1:
		return Faster
	case p.High < 1:
		return Slower
	}
	return Noise
}
