package trials

import (
	"fmt"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Reference is what the measurements of a task are seen against. Zero values are not known.
type Reference struct {
	// DefaultDigest is that of the default schedule's trace.
	DefaultDigest string
	// PeakSeconds is the least time for the task's arithmetic on the target, each sum computed directly, ByteSeconds
	// that for reading and writing its arguments once.
	PeakSeconds, ByteSeconds float64
}

// Task is what is known of one task of a job.
type Task struct {
	// Name is unique within the job.
	Name   string
	Weight float64
	Flop   float64
	// Trials counts those recorded, failures included.
	Trials int
	// KnownTrials counts those of earlier jobs that this one goes on from.
	KnownTrials int
	// Errors counts failures by class, e.g. "timeout"; Messages has the first message of each.
	Errors   map[string]int
	Messages map[string]string
	// UntunedSeconds is the latency of the default schedule, BestSeconds that of the fastest, what earlier jobs
	// measured included; 0 = not measured.
	UntunedSeconds, BestSeconds float64
	// BuildSeconds and RunSeconds are the sums over all trials.
	BuildSeconds, RunSeconds float64

	// Best is the measurement with BestSeconds, without what only builders and tuners read; nil when there is none, or
	// nobody knows.
	Best *tilthv1.Measurement
	// RemeasuredFrom is the lower latency that the best candidate had until it was measured again, in seconds; 0 = it
	// did not get slower so.
	RemeasuredFrom float64

	reference Reference
	knownBest *tilthv1.Measurement
	// The best of what earlier jobs measured, until this one measures its candidate again.
	knownBestSeconds float64
	knownBestDigest  string
}

// newTask is a task before the job's first event. known is its progress when the job was made.
func newTask(name string, spec *tilthv1.TaskSpec, known *tilthv1.TaskProgress, reference Reference) Task {
	return Task{
		Name: name, Weight: spec.GetWeight(), Flop: spec.GetFlop(), Errors: map[string]int{}, Messages: map[string]string{},
		KnownTrials: int(known.GetKnownTrials()), UntunedSeconds: known.GetKnownDefaultSeconds(),
		BestSeconds: known.GetKnownBestSeconds(), knownBestSeconds: known.GetKnownBestSeconds(),
		knownBestDigest: known.GetKnownBestDigest(), reference: reference, Best: known.GetKnownBest(), knownBest: known.GetKnownBest(),
	}
}

func (t *Task) add(trial *tilthv1.TrialRecorded) {
	m := trial.GetMeasurement()
	t.Trials++
	if m == nil { // its record was pruned
		t.setBest(trial.GetBestSeconds())
		return
	}
	t.BuildSeconds += m.GetBuildSeconds()
	t.RunSeconds += m.GetRunSeconds()
	t.measuredAgain(m)
	t.setBest(trial.GetBestSeconds())
	t.keepBest(m)
	if class := names.ErrorClass(m.GetError()); class != "" {
		if t.Errors[class]++; t.Errors[class] == 1 {
			t.Messages[class] = m.GetMessage()
		}
	} else if m.GetCandidate().GetDigest() == t.reference.DefaultDigest {
		t.UntunedSeconds = m.GetLatencySeconds()
	}
}

// set takes a task's progress in the place of its events.
func (t *Task) set(p *tilthv1.TaskProgress) {
	t.Trials = int(p.GetTrials())
	if p.GetDefaultSeconds() > 0 {
		t.UntunedSeconds = p.GetDefaultSeconds()
	}
	t.measuredAgain(p.GetBest())
	t.setBest(p.GetBestSeconds())
	t.keepBest(p.GetBest())
	for name, n := range p.GetErrors() {
		t.Errors[names.ErrorClassName(name)] = int(n)
	}
	for name, message := range p.GetMessages() {
		t.Messages[names.ErrorClassName(name)] = message
	}
}

// measuredAgain forgets what earlier jobs measured of their best candidate when this one measured it, too.
func (t *Task) measuredAgain(m *tilthv1.Measurement) {
	if m.GetLatencySeconds() > 0 && m.GetCandidate().GetDigest() == t.knownBestDigest {
		t.knownBestSeconds = 0
	}
}

// setBest takes the best latency of the job's own trials, in seconds; 0 = none. It may rise, when the best is measured
// again.
func (t *Task) setBest(seconds float64) {
	t.BestSeconds = seconds
	metered := t.knownBest.GetEnergyJoules() > 0 // so that seconds do not say which is better
	if seconds == 0 || !metered && t.knownBestSeconds > 0 && t.knownBestSeconds < seconds {
		t.BestSeconds = t.knownBestSeconds
	}
}

// keepBest takes the measurement that has just become the best, if m is that one.
func (t *Task) keepBest(m *tilthv1.Measurement) {
	before := t.Best
	switch {
	case t.BestSeconds == 0:
		t.Best, t.RemeasuredFrom = nil, 0
	case m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE && m.GetLatencySeconds() == t.BestSeconds:
		t.Best = m
		again := before.GetCandidate().GetDigest() == m.GetCandidate().GetDigest() && before.GetLatencySeconds() > 0
		switch {
		case again && m.GetLatencySeconds() > before.GetLatencySeconds():
			t.RemeasuredFrom = before.GetLatencySeconds()
		case before.GetLatencySeconds() != m.GetLatencySeconds():
			t.RemeasuredFrom = 0
		}
	case t.Best.GetLatencySeconds() != t.BestSeconds: // an earlier job's best stands again
		t.Best, t.RemeasuredFrom = t.knownBest, 0
	}
}

// Interval is where the best one's median lies, in seconds, and with what probability; all 0 when that is not known.
func (t *Task) Interval() (low, high, level float64) {
	if t.Best.GetLatencySeconds() != t.BestSeconds {
		return 0, 0, 0
	}
	i := t.Best.GetInterval()
	return i.GetLowSeconds(), i.GetHighSeconds(), i.GetLevel()
}

// Uncertainty is that interval for people, and says of a best that got slower when it was measured again.
func (t *Task) Uncertainty() string {
	low, high, level := t.Interval()
	text := show.Interval(low, high, level, stat.LatencyLevel)
	if t.RemeasuredFrom > 0 {
		text += fmt.Sprintf(" remeasured, was %s", show.Seconds(t.RemeasuredFrom))
	}
	return text
}

// Limit is the least time that the task can take on its target in seconds with the algorithm of its best schedule, and
// whether it is the bytes that ask for it; 0 when that is not known. What the best one beats is no limit.
func (t *Task) Limit() (seconds float64, byBytes bool) {
	arithmetic, bytes := t.unbeaten(t.multiplications()*t.reference.PeakSeconds), t.unbeaten(t.reference.ByteSeconds)
	return max(arithmetic, bytes), bytes > arithmetic
}

// unbeaten is a limit in seconds, or 0 where the best one is so far below it that the rates were measured too low.
func (t *Task) unbeaten(limit float64) float64 {
	if t.BestSeconds > 0 && show.Share(limit, t.BestSeconds) == show.Missing {
		return 0
	}
	return limit
}

// multiplications are those of the best schedule, as a share of those of direct sums: 1 before there is one, and 0,
// which leaves the bytes alone as a limit, where a schedule with another algorithm does not say.
func (t *Task) multiplications() float64 {
	c := t.Best.GetCandidate()
	direct := c.GetNumerics() == "" || c.GetNumerics() == wire.NumericsStrict
	switch {
	case c.GetMultiplications() > 0:
		return c.GetMultiplications()
	case t.BestSeconds == 0, t.Best != nil && direct:
		return 1
	}
	return 0
}

// Failed says that all trials of the task failed, and no earlier job has a right one.
func (t *Task) Failed() bool { return t.BestSeconds == 0 && t.Trials > 0 }
