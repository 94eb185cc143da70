package stats

import (
	"cmp"
	"math"
	"slices"
)

// Summary holds the usual statistics of samples.
type Summary struct {
	Mean, Median, Min, Max float64
	// P90 and P99 are percentiles, interpolated between samples.
	P90, P99 float64
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
	s := Summary{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], P90: quantile(sorted, 0.9), P99: quantile(sorted, 0.99), Count: n}
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

// Quartiles returns the quartiles of samples, interpolated between them, or zeros without samples.
func Quartiles(samples []float64) (low, median, high float64) {
	if len(samples) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)
}

// quantile returns the sample below which a share of the sorted samples lies, interpolated between two.
func quantile(sorted []float64, share float64) float64 {
	whole, part := math.Modf(share * float64(len(sorted)-1))
	k := int(whole)
	return sorted[k] + part*(sorted[min(k+1, len(sorted)-1)]-sorted[k])
}

// Parts returns the typical time of each part of a process, given their times in each of its executions: the mean over
// the executions whose sums are in the middle half. Unlike medians, which leave out what disturbs another part in each
// execution, they add up to a typical sum. Parts that were not executed are negative.
func Parts(executions [][]float64) []float64 {
	if len(executions) == 0 {
		return nil
	}
	sum := func(parts []float64) (total float64) {
		for _, v := range parts {
			total += max(0, v)
		}
		return total
	}
	sorted := slices.SortedStableFunc(slices.Values(executions), func(a, b []float64) int { return cmp.Compare(sum(a), sum(b)) })
	apart := (len(sorted) - 1) / 4
	middle := sorted[apart : len(sorted)-apart]
	mean := make([]float64, len(middle[0]))
	for _, parts := range middle {
		for k, v := range parts {
			mean[k] += v / float64(len(middle))
		}
	}
	return mean
}

// lowerHalf is the distance between the lower quartile and the median of a normal distribution, in standard
// deviations.
const lowerHalf = 0.6745

// Steady returns the lower quartile of samples that disturbances may have lengthened, but never shortened, and an
// estimate of their relative standard deviation from the less disturbed half. It returns zeros without samples.
func Steady(samples []float64) (low, noise float64) {
	low, middle, _ := Quartiles(samples)
	if middle == 0 {
		return low, 0
	}
	return low, (middle - low) / lowerHalf / middle
}

// Spearman returns the rank correlation of two lists of the same length, from -1 to 1, or 0 if all values of
// a list are equal.
func Spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	var xy, xx, yy float64
	for k := range x {
		dx, dy := x[k]-mean, y[k]-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks returns the ranks of the values. Equal values share their mean rank.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	list := make([]float64, len(values))
	for k := 0; k < len(order); {
		end := k + 1
		for end < len(order) && values[order[end]] == values[order[k]] {
			end++
		}
		for _, at := range order[k:end] {
			list[at] = float64(k+end-1) / 2
		}
		k = end
	}
	return list
}

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

// Error probabilities of SlowdownTest, each over all calls of Judge together.
const (
	// FalseAlarm bounds the probability of calling an equally fast program slower.
	FalseAlarm = 0.001
	// MissedSlowdown bounds the probability of not finding a slowdown by the threshold, given enough ratios.
	MissedSlowdown = 0.05
)

// Verdicts of a SlowdownTest, beside Slower.
const (
	NotSlower = "not slower"
	Undecided = "undecided"
)

// Slowdown is the outcome of a SlowdownTest.
type Slowdown struct {
	// Ratio is the median of the ratios: 1.03 is 3 % slower. Low bounds it from below with a probability of 0.999, and
	// High from above with one of 0.95. With too few ratios they are the least and the largest one.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"ratio_low"`
	High  float64 `json:"ratio_high"`
	// Verdict is slower, not slower, or undecided.
	Verdict string `json:"verdict"`
}

// SlowdownTest decides whether a program is slower than another one by at least Threshold, a share such as 0.03. It is
// a group sequential test of the median by order statistics, so it assumes nothing about the distribution of the
// ratios but their independence. The error probabilities are divided equally among Looks (Bonferroni).
type SlowdownTest struct {
	Threshold float64
	// Looks is the maximum number of calls of Judge.
	Looks int
}

// Judge judges the ratios so far, each the time of the program divided by that of the other one, measured beside it.
// Before the last look, a slowdown that is certain but smaller than the threshold leaves the test undecided.
func (t SlowdownTest) Judge(ratios []float64, last bool) Slowdown {
	low, high := t.bound(ratios, FalseAlarm), t.bound(ratios, MissedSlowdown)
	s := Slowdown{Ratio: Of(ratios).Median, Low: low.Low, High: high.High, Verdict: Undecided}
	enough := 1 + t.Threshold
	switch {
	case low.Level > 0 && low.Low > 1 && (s.Ratio >= enough || last && s.High >= enough):
		s.Verdict = Slower
	case high.Level > 0 && s.High < enough:
		s.Verdict = NotSlower
	}
	return s
}

// bound returns the interval of the median with the given error on each side. Its level is 0 if there are too few
// ratios.
func (t SlowdownTest) bound(ratios []float64, errorPerSide float64) Interval {
	level := 1 - 2*errorPerSide/float64(t.Looks)
	i := MedianIntervalAt(ratios, level)
	if i.Level < level {
		i.Level = 0
	}
	return i
}
