package trials

import (
	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Reference is what the measurements of a task are seen against. Zero values are not known.
type Reference struct {
	// DefaultDigest is that of the default schedule's trace.
	DefaultDigest string
	// PeakSeconds is the least time for the task's arithmetic on the target, each sum computed directly, ByteSeconds that for
	// reading and writing its arguments once.
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
	// UntunedSeconds is the latency of the default schedule, BestSeconds that of the fastest, what earlier jobs measured included;
	// 0 = not measured.
	UntunedSeconds, BestSeconds float64
	// BuildSeconds and RunSeconds are the sums over all trials.
	BuildSeconds, RunSeconds float64

	reference Reference
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
		knownBestDigest: known.GetKnownBestDigest(), reference: reference,
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
	if class := show.ErrorClass(m.GetError()); class != "" {
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
	t.measuredAgain(p.GetBest())
	t.setBest(p.GetBestSeconds())
	for name, n := range p.GetErrors() {
		t.Errors[show.ErrorClassName(name)] = int(n)
	}
	for name, message := range p.GetMessages() {
		t.Messages[show.ErrorClassName(name)] = message
	}
}

// measuredAgain forgets what earlier jobs measured of their best candidate when this one measured it, too.
func (t *Task) measuredAgain(m *tilthv1.Measurement) {
	if m.GetLatencySeconds() > 0 && m.GetCandidate().GetDigest() == t.knownBestDigest {
		t.knownBestSeconds = 0
	}
}

// setBest takes the best latency of the job's own trials, in seconds; 0 = none. It may rise, when the best is measured again.
func (t *Task) setBest(seconds float64) {
	t.BestSeconds = seconds
	if seconds == 0 || t.knownBestSeconds > 0 && t.knownBestSeconds < seconds {
		t.BestSeconds = t.knownBestSeconds
	}
}

// Limit is the least time that the task can take on its target in seconds, and whether it is the bytes that ask for it; 0 when
// that is not known.
func (t *Task) Limit() (seconds float64, byBytes bool) {
	return max(t.reference.PeakSeconds, t.reference.ByteSeconds), t.reference.ByteSeconds > t.reference.PeakSeconds
}

// Failed says that all trials of the task failed, and no earlier job has a right one.
func (t *Task) Failed() bool { return t.BestSeconds == 0 && t.Trials > 0 }
