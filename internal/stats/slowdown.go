package stats

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
