package bench

import (
	"context"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/internal/agent/hostlock"
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

// Timed runs work while no agent of this host and user computes. It uses the lock in hostlock.DefaultDir.
func Timed(ctx context.Context, work func() error) error {
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return err
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return err
	}
	defer release()
	return work()
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
