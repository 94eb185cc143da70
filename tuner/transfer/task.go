package transfer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
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
