package space

import "github.com/tilth-dev/tilth/compiler/schedule"

// Settings are chosen values by knob name.
type Settings map[string]int64

// Sketch is what a backend knows of the schedules of one workload on one target: their structure, in which the values
// of knobs are left open. Its methods may be called by several goroutines at a time.
type Sketch interface {
	// Knobs are the open numbers where every sum is computed directly.
	Knobs() []Knob
	// Algorithms are the values of AlgorithmKnob that stand for other algorithms than the direct sum, ascending, and
	// the knobs of those; none when there is no choice.
	Algorithms() (values []int64, knobs []Knob)
	// Legal says why settings break a constraint that is known before compiling; nil when they break none.
	Legal(set Settings) error
	// Cost is a rough estimate of the run time of legal settings, in cycles of one core.
	Cost(set Settings) float64
	// Apply schedules a workload by legal settings.
	Apply(s *schedule.Schedule, set Settings) error
	// Seeds are points that are known to be good, in the form that Space.Format prints.
	Seeds() []string
	// Reconcile is what has to change in settings that were drawn or mixed so that they agree with one another; the
	// nearest value is taken where a knob lacks one.
	Reconcile(set Settings) Settings
	// Unrolls are the knobs that say how many steps of a loop are written out.
	Unrolls() []string
}
