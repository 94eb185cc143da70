package knowledge

import (
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/costmodel"
)

// Guess is a schedule that was never measured.
type Guess struct {
	Point    space.Point
	Schedule *schedule.Schedule
	// Seconds is how long the model thinks it takes.
	Seconds float64
	// Default says that it is the schedule that is used when nothing at all is known.
	Default bool
}

const (
	// guessDraws points are drawn for a guess, of which the analytic cost leaves guessDrafted.
	guessDraws   = 384
	guessDrafted = 64
	// guessGain is how many times faster than the default a schedule must be predicted to be preferred to it.
	guessGain = 1.05
)

// Guesses are what the model thinks is fastest, for each algorithm of a space that has a legal point; none when
// nothing was ever measured. The same history gives the same guesses.
func (h *History) Guesses(s *space.Space) ([]Guess, error) {
	if h == nil {
		return nil, nil
	}
	m, err := h.learnt()
	if err != nil || m == nil {
		return nil, err
	}
	defaults, err := h.predicted(s, m, s.Defaults())
	if err != nil {
		return nil, err
	}
	others, err := h.predicted(s, m, h.promising(s))
	for k, d := range defaults {
		defaults[k].Default = true
		for _, g := range others {
			if s.Algorithm(g.Point) == s.Algorithm(d.Point) && g.Seconds*guessGain < d.Seconds && g.Seconds < defaults[k].Seconds {
				defaults[k] = g
			}
		}
	}
	return defaults, err
}

// promising are points that near tasks lend, hand-written ones, and the analytically best of a fixed sample.
func (h *History) promising(s *space.Space) []space.Point {
	rng := rand.New(rand.NewPCG(3, 4))
	var drawn []space.Point
	for range guessDraws {
		if p, ok := s.Random(rng); ok {
			drawn = append(drawn, p)
		}
	}
	s.Sort(drawn)
	points := append(h.near(s, s.Workload.Digest()), s.Seeds()...)
	return append(points, drawn[:min(guessDrafted, len(drawn))]...)
}

// predicted are the points that apply, in their order.
func (h *History) predicted(s *space.Space, m *costmodel.Model, points []space.Point) ([]Guess, error) {
	var list []Guess
	var rows []Row
	for _, p := range points {
		if sch, err := s.Apply(p); err == nil {
			list, rows = append(list, Guess{Point: p, Schedule: sch}), append(rows, Describe(s, p, sch))
		}
	}
	times, err := m.Times(rows)
	for k := range list {
		list[k].Seconds = math.Exp2(times[k]) * 1e-9
	}
	return list, err
}
