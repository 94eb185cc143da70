package knowledge

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// Latencies are those of the earlier trials of a space's workload on the history's own target that say how far the
// space was searched, in their order; 0 for one that failed. Those whose points the space no longer has, because its
// rules changed since, do not count, and none does when the schedule that is the default now was never measured. A nil
// history has none.
func (h *History) Latencies(s *space.Space) (list []float64) {
	t := h.own(s.Workload.Digest())
	if t == nil || !t.measured(s, s.Default()) {
		return nil
	}
	for _, trial := range t.Trials {
		if _, ok := trial.pointOf(s); ok {
			list = append(list, trial.LatencySeconds)
		}
	}
	return list
}

// measured reports whether a point's schedule is among the trials.
func (t *Task) measured(s *space.Space, p space.Point) bool {
	sch, err := s.Apply(p)
	if err != nil {
		return false
	}
	digest := schedule.Digest(sch.Trace())
	return slices.ContainsFunc(t.Trials, func(trial Trial) bool { return trial.Digest == digest })
}

// pointOf is the trial's point, as far as the space still has just that: each of its knobs was there, with the same
// value.
func (t Trial) pointOf(s *space.Space) (space.Point, bool) {
	p, ok := s.Parse(t.Origin)
	return p, ok && s.Format(p) == t.Origin
}
