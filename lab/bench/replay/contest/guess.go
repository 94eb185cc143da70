package contest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// share returns the speed of a schedule relative to the best known. It is 0 if the schedule failed or is not in the
// set.
func (d *device) share(s *schedule.Schedule) float64 {
	p := d.points[schedule.Digest(s.Trace())]
	if p == nil || p.Error != "" {
		return 0
	}
	return d.best / p.LatencySeconds()
}

// defaultShare returns the share of the best throughput that the default schedule reaches.
func (d *device) defaultShare() float64 {
	s, err := d.space.Apply(d.space.Default())
	if err != nil {
		return 0
	}
	return d.share(s)
}

// guessShare returns the share that the schedule guessed from other workloads reaches, without a trial.
func (p *past) guessShare(k int) (float64, error) {
	guesses, err := p.others[k]().Guesses(p.devices[k].space)
	if err != nil {
		return 0, fmt.Errorf("replay: %s: %w", p.devices[k].set.Task, err)
	}
	if len(guesses) == 0 {
		return p.devices[k].defaultShare(), nil
	}
	best := slices.MinFunc(guesses, func(a, b knowledge.Guess) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return p.devices[k].share(best.Schedule), nil
}
