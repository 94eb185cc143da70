package transfer

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// Latencies returns the earlier trials of a space's workload on the history's own target that show how far
// the space was searched, in order; 0 marks a failed trial. Points that the space no longer contains do not
// count. It returns nil for a nil history, or if the current default schedule was never measured.
func (h *History) Latencies(s *searchspace.Space) (list []float64) {
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

// measured reports whether the schedule of a point is among the trials.
func (t *Task) measured(s *searchspace.Space, p searchspace.Point) bool {
	sch, err := s.Apply(p)
	if err != nil {
		return false
	}
	digest := schedule.Digest(sch.Trace())
	return slices.ContainsFunc(t.Trials, func(trial Trial) bool { return trial.Digest == digest })
}

// pointOf returns the trial's point if the space still has exactly that point: each of its knobs exists, with
// the same value.
func (t Trial) pointOf(s *searchspace.Space) (searchspace.Point, bool) {
	p, ok := s.Parse(t.Origin)
	return p, ok && s.Format(p) == t.Origin
}
