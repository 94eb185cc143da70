package stat

// DecisionLevel is the level of intervals on which decisions are based.
const DecisionLevel = 0.95

// Paired compares two alternatives that were timed in turns.
type Paired struct {
	// Ratio is the median over the turns of the first time divided by the second: above 1, the second is
	// faster.
	Ratio float64 `json:"speed_up"`
	// Low and High bound the median ratio with a probability of RatioLevel.
	Low        float64 `json:"speed_up_low"`
	High       float64 `json:"speed_up_high"`
	RatioLevel float64 `json:"speed_up_level"`
}

// PairedRatio compares samples taken in turns. The k-th samples of both are adjacent in time, so disturbances
// of the machine affect both and cancel in their ratio. The interval is that of the sign test on the ratios,
// by order statistics (see MedianInterval). It assumes independent turns of any distribution. Incomplete
// turns are ignored.
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
