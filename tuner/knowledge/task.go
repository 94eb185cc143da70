package knowledge

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Task is what was measured of one workload on one target. It must not be changed or copied once it is part of a
// History; it may be part of several.
type Task struct {
	Workload *expr.Workload
	// Target is where it was measured.
	Target *target.Target
	Trials []Trial

	once sync.Once
	read reading

	describing sync.Mutex
	// described are rows of trials by origin, so that histories which share the task describe each once.
	described map[string]Row
}

// Trial is one measurement.
type Trial struct {
	// Origin is the point as text (space.Format).
	Origin string
	// Digest identifies the trace that was measured; empty where that is not known.
	Digest string
	// LatencySeconds is the median of its samples; 0 when it failed.
	LatencySeconds float64
}

// reading is what is derived from a task, once.
type reading struct {
	space *space.Space
	shape expr.Shape
	// digest is the workload's.
	digest string
	// ranked are the trials that did not fail, fastest first.
	ranked []Trial
	knobs  string
}

// reads derives what a history needs of the task.
func (t *Task) reads() *reading {
	t.once.Do(func() {
		r := &t.read
		r.shape, r.digest = expr.ShapeOf(t.Workload.Text()), t.Workload.Digest()
		var err error
		if r.space, err = registry.Space(t.Workload, t.Target, schedule.Fast); err != nil {
			return // measured for a backend that this program lacks: nothing to learn from
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

// describes is the row of a trial; empty when its point does not apply.
func (t *Task) describes(trial Trial) Row {
	t.describing.Lock()
	defer t.describing.Unlock()
	row, known := t.described[trial.Origin]
	if known {
		return row
	}
	s := t.reads().space
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

// knobNames is equal for spaces whose points can be read in each other.
func knobNames(s *space.Space) string {
	names := ""
	for _, k := range s.Knobs {
		names += k.Name + " "
	}
	return names
}
