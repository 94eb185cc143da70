package stat

// DecisionLevel is the probability with which an interval holds what a decision rests on.
const DecisionLevel = 0.95

// Paired compares two things that were timed in turns.
type Paired struct {
	// Ratio is the median over the turns of the first one's time over the second one's: above 1, the second is faster.
	Ratio float64 `json:"speed_up"`
	// Low and High hold the ratio's median with a probability of RatioLevel.
	Low        float64 `json:"speed_up_low"`
	High       float64 `json:"speed_up_high"`
	RatioLevel float64 `json:"speed_up_level"`
}

// PairedRatio compares samples that were taken in turns: the k-th of both lie side by side in time, so that what slows
// the machine down for a while slows both, and leaves their ratio alone. The interval is that of the sign test on the
// ratios, by order statistics (see MedianInterval): it assumes that turns are independent, and nothing of their
// distribution. Turns of which one has no sample are left out.
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

// Verdict says what the turns tell of the second one at DecisionLevel. A difference that its interval does not tell
// from none is noise.
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
