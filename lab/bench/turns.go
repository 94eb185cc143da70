package bench

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/stats"
)

// Turns compares programs that took turns, so that changes of the machine's speed affected both.
type Turns struct {
	// Seconds and PeerSeconds are medians over all samples.
	Seconds, PeerSeconds float64
	// Ratio is the median over the rounds of the peer's time divided by ours. Low and High are the quartiles.
	Low, Ratio, High float64
}

// Compare compares the samples of rounds in seconds. Both programs have the same number of rounds.
func Compare(ours, peer [][]float64) (t Turns) {
	var ratios []float64
	for k := range ours {
		ratios = append(ratios, stats.Of(peer[k]).Median/stats.Of(ours[k]).Median)
	}
	t.Seconds, t.PeerSeconds = stats.Of(slices.Concat(ours...)).Median, stats.Of(slices.Concat(peer...)).Median
	t.Low, t.Ratio, t.High = stats.Quartiles(ratios)
	return t
}
