package progress

import (
	"fmt"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Reference holds reference values for a task's measurements. Zero values are unknown.
type Reference struct {
	// DefaultDigest is the digest of the default schedule's trace.
	DefaultDigest string
	// PeakSeconds is the minimum time for the task's arithmetic on the target with direct sums, and
	// ByteSeconds that for accessing its arguments once.
	PeakSeconds, ByteSeconds float64
}

// Task summarises one task of a job.
type Task struct {
	// Name is unique within the job.
	Name string
	// Workload is the digest of its workload.
	Workload string
	Weight   float64
	Flop     float64
	// Trials counts the recorded trials, including failures.
	Trials int
	// KnownTrials counts the trials of earlier jobs that this one continues from.
	KnownTrials int
	// Errors counts failures by class, such as "timeout". Messages holds the first message of each.
	Errors   map[string]int
	Messages map[string]string
	// UntunedSeconds is the latency of the default schedule, and BestSeconds the lowest latency, including
	// earlier jobs; 0 if not measured.
	UntunedSeconds, BestSeconds float64
	// BuildSeconds and RunSeconds are the sums over all trials.
	BuildSeconds, RunSeconds float64

	// Best is the measurement with BestSeconds, without the fields that only builders and tuners read, or nil
	// if unknown.
	Best *tilthv1.Measurement
	// RemeasuredFrom is the lower latency of the best candidate before it was measured again, in seconds, or 0.
	RemeasuredFrom float64
	// InModel compares its schedules within a model; nil if that was not measured.
	InModel *MeasuredTask

	reference Reference
	knownBest *tilthv1.Measurement
	// knownBestSeconds and knownBestDigest are those of earlier jobs, until this one measures the candidate again.
	knownBestSeconds float64
	knownBestDigest  string
}

// newTask returns a task before the job's first event. known is its progress at the job's creation.
func newTask(name string, spec *tilthv1.TaskSpec, known *tilthv1.TaskProgress, reference Reference) Task {
	return Task{
		Name: name, Workload: spec.GetWorkloadDigest(), Weight: spec.GetWeight(), Flop: spec.GetFlop(), Errors: map[string]int{}, Messages: map[string]string{},
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
	if class := wire.ErrorClass(m.GetError()); class != "" {
		if t.Errors[class]++; t.Errors[class] == 1 {
			t.Messages[class] = m.GetMessage()
		}
	} else if m.GetCandidate().GetDigest() == t.reference.DefaultDigest {
		t.UntunedSeconds = m.GetLatencySeconds()
	}
}

// set replaces the task's state by its progress.
func (t *Task) set(p *tilthv1.TaskProgress) {
	t.Trials = int(p.GetTrials())
	if p.GetDefaultSeconds() > 0 {
		t.UntunedSeconds = p.GetDefaultSeconds()
	}
	t.measuredAgain(p.GetBest())
	t.setBest(p.GetBestSeconds())
	t.keepBest(p.GetBest())
	for name, n := range p.GetErrors() {
		t.Errors[wire.ErrorClassName(name)] = int(n)
	}
	for name, message := range p.GetMessages() {
		t.Messages[wire.ErrorClassName(name)] = message
	}
}

// measuredAgain discards earlier jobs' measurement of their best candidate once this job has measured it, too.
func (t *Task) measuredAgain(m *tilthv1.Measurement) {
	if m.GetLatencySeconds() > 0 && m.GetCandidate().GetDigest() == t.knownBestDigest {
		t.knownBestSeconds = 0
	}
}

// setBest sets the best latency of the job's own trials, in seconds, or 0. It may rise when the best
// candidate is measured again.
func (t *Task) setBest(seconds float64) {
	t.BestSeconds = seconds
	metered := t.knownBest.GetEnergyJoules() > 0 // seconds do not order candidates then
	if seconds == 0 || !metered && t.knownBestSeconds > 0 && t.knownBestSeconds < seconds {
		t.BestSeconds = t.knownBestSeconds
	}
}

// keepBest stores a measurement if it is the new best.
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

// Interval returns the confidence interval of the best median, in seconds, and its level; zeros if unknown.
func (t *Task) Interval() (low, high, level float64) {
	if t.Best.GetLatencySeconds() != t.BestSeconds {
		return 0, 0, 0
	}
	i := t.Best.GetInterval()
	return i.GetLowSeconds(), i.GetHighSeconds(), i.GetLevel()
}

// Uncertainty formats that interval, and notes a best candidate that was slower when measured again.
func (t *Task) Uncertainty() string {
	low, high, level := t.Interval()
	text := humanize.Interval(low, high, level, stats.LatencyLevel)
	if t.RemeasuredFrom > 0 {
		text += fmt.Sprintf(" remeasured, was %s", humanize.Seconds(t.RemeasuredFrom))
	}
	return text
}

// Limit returns the minimum time of the task on its target in seconds, with the algorithm of its best
// schedule, and whether memory transfers determine it. It returns 0 if the limit is unknown or beaten.
func (t *Task) Limit() (seconds float64, byBytes bool) {
	arithmetic, bytes := t.unbeaten(t.multiplications()*t.reference.PeakSeconds), t.unbeaten(t.reference.ByteSeconds)
	return max(arithmetic, bytes), bytes > arithmetic
}

// unbeaten returns a limit in seconds, or 0 if the best latency is so far below it that the rates must be too low.
func (t *Task) unbeaten(limit float64) float64 {
	if t.BestSeconds > 0 && humanize.Share(limit, t.BestSeconds) == humanize.Missing {
		return 0
	}
	return limit
}

// multiplications returns the multiplications of the best schedule relative to direct sums: 1 without a best schedule,
// and 0, which only leaves the memory limit, if a schedule with another algorithm does not report them.
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

// Failed reports whether all trials of the task failed and no earlier job has a correct one.
func (t *Task) Failed() bool { return t.BestSeconds == 0 && t.Trials > 0 }
