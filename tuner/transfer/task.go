package transfer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// Task holds the measurements of one workload on one target. It must not be changed or copied once it is part
// of a History. Several histories may share it.
type Task struct {
	Workload *expr.Workload
	// Target is the target of the measurements.
	Target *target.Target
	Trials []Trial

	once sync.Once
	read reading

	describing sync.Mutex
	// described caches the rows of trials by origin, so that histories that share the task compute each once.
	described map[string]Row
}

// Trial is one measurement.
type Trial struct {
	// Origin is the point as text (searchspace.Format).
	Origin string
	// Digest identifies the measured trace; empty if unknown.
	Digest string
	// LatencySeconds is the median of the samples; 0 for a failed trial.
	LatencySeconds float64
}

// reading caches data derived from a task.
type reading struct {
	space *searchspace.Space
	shape expr.Shape
	// digest is the digest of the workload.
	digest string
	// ranked holds the successful trials, fastest first.
	ranked []Trial
	knobs  string
}

// derive derives the data that a history needs from the task, once.
func (t *Task) derive() *reading {
	t.once.Do(func() {
		r := &t.read
		r.shape, r.digest = expr.ShapeOf(t.Workload.Text()), t.Workload.Digest()
		var err error
		if r.space, err = registry.Space(t.Workload, t.Target, schedule.Fast); err != nil {
			return // the program lacks the backend, so the task cannot be used
		}
		for _, trial := range t.Trials {
			if trial.LatencySeconds > 0 {
				r.ranked = append(r.ranked, trial)
			}
		}
		slices.SortStableFunc(r.ranked, func(a, b Trial) int { return cmp.Compare(a.LatencySeconds, b.LatencySeconds) })
		r.knobs = knobNames(r.space)
	})
	return &t.read
}

// describes returns the row of a trial, empty if its point does not apply.
func (t *Task) describes(trial Trial) Row {
	t.describing.Lock()
	defer t.describing.Unlock()
	row, known := t.described[trial.Origin]
	if known {
		return row
	}
	s := t.derive().space
	if p, ok := s.Parse(trial.Origin); ok {
		if sch, err := s.Apply(p); err == nil {
			row = Describe(s, p, sch)
		}
	}
	if t.described == nil {
		t.described = map[string]Row{}
	}
	t.described[trial.Origin] = row
	return row
}

// knobNames returns a key that is equal for spaces with interchangeable points.
func knobNames(s *searchspace.Space) string {
	names := ""
	for _, k := range s.Knobs {
		names += k.Name + " "
	}
	return names
}

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

// Row holds the features of a point.
type Row = costfeatures.Row

// Describe returns the row of a legal point of s with schedule sch. The row is empty, and unusable by models,
// if the target's backend is unknown.
func Describe(s *searchspace.Space, p searchspace.Point, sch *schedule.Schedule) Row {
	b, err := registry.Of(s.Target)
	if err != nil {
		return Row{}
	}
	return b.Features().Describe(sch, s.Target, s.Cost(p))
}

// Costs returns the base-2 logarithms of the analytic costs of rows.
func Costs(rows []Row) []float64 {
	var analytic *costmodel.Model
	costs, _ := analytic.Times(rows) // the analytic cost needs no model features
	return costs
}
