package transfer

import (
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/costmodel"
)

// Guess is a schedule that was never measured.
type Guess struct {
	Point    searchspace.Point
	Schedule *schedule.Schedule
	// Seconds is the predicted latency.
	Seconds float64
	// Default is set for the default schedule, which is used when nothing is known.
	Default bool
}

const (
	// guessDraws points are drawn for a guess; the analytic cost drafts guessDrafted of them.
	guessDraws   = 384
	guessDrafted = 64
	// guessGain is the predicted speed-up over the default schedule from which a schedule is preferred to it.
	guessGain = 1.05
)

// Guesses returns the schedule that the model predicts to be fastest for each algorithm of a space with a
// legal point. It returns none if there are no measurements. The same history gives the same guesses.
func (h *History) Guesses(s *searchspace.Space) ([]Guess, error) {
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

// promising returns the points of similar tasks, the hand-written ones, and the analytically best of a fixed sample.
func (h *History) promising(s *searchspace.Space) []searchspace.Point {
	rng := rand.New(rand.NewPCG(3, 4))
	var drawn []searchspace.Point
	for range guessDraws {
		if p, ok := s.Random(rng); ok {
			drawn = append(drawn, p)
		}
	}
	s.Sort(drawn)
	points := append(h.near(s, s.Workload.Digest()), s.Seeds()...)
	return append(points, drawn[:min(guessDrafted, len(drawn))]...)
}

// predicted returns guesses for the points that apply, in order.
func (h *History) predicted(s *searchspace.Space, m *costmodel.Model, points []searchspace.Point) ([]Guess, error) {
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
