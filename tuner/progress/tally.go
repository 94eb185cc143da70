package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Tally summarises one job.
type Tally struct {
	Tasks []Task
	// State and Reason are the job's latest.
	State  tilthv1.JobState
	Reason string
	// Events counts the events, and so is the sequence number of the last.
	Events int
	// DeadLetters counts the abandoned batches.
	DeadLetters int
	// FarmFailures holds the last failure of each class that no candidate caused.
	FarmFailures []FarmFailure
	// Started is the time of the job's creation, and Last that of its latest event.
	Started, Last time.Time
	// SearchSeconds is the time spent on searching, as far as tuners report it.
	SearchSeconds float64
	// Status is the job's status; nil if the tracker does not report it or the job has ended.
	Status *tilthv1.JobStatus
	// StatusAt is the time at which Status arrived.
	StatusAt time.Time
	// Curve is the total latency over time.
	Curve Curve
}

// NewTally returns a tally of a job before its first event. references holds known reference values of the
// tasks and may be shorter.
func NewTally(job *tilthv1.Job, references []Reference) *Tally {
	t := &Tally{State: job.GetState(), FarmFailures: FarmFailures(job), Started: job.GetCreatedAt().AsTime()}
	t.Last = t.Started
	t.Begin(job, references)
	return t
}

// Begin sets the tasks of a job, which are unknown until its model was read.
func (t *Tally) Begin(job *tilthv1.Job, references []Reference) {
	names := map[string]int{}
	for i, task := range job.GetSpec().GetTasks() {
		var reference Reference
		if i < len(references) {
			reference = references[i]
		}
		var known *tilthv1.TaskProgress
		if i < len(job.GetProgress()) {
			known = job.GetProgress()[i]
		}
		t.Tasks = append(t.Tasks, newTask(UniqueName(names, task.GetName()), task, known, reference))
	}
	t.Curve.add(t)
}

// AddModels adds comparisons within models. Of a task of several models, the first that executed it counts.
func (t *Tally) AddModels(models []MeasuredModel) {
	for _, m := range models {
		for k, measured := range m.Tasks {
			of := func(task Task) bool {
				return measured.UntunedSeconds > 0 && task.Workload == measured.Workload && task.InModel == nil
			}
			if i := slices.IndexFunc(t.Tasks, of); i >= 0 {
				t.Tasks[i].InModel = &m.Tasks[k]
			}
		}
	}
}

// OfProgress returns a tally from the job's own progress, without events: it has no curve and no times.
func OfProgress(job *tilthv1.Job, references []Reference) *Tally {
	t := NewTally(job, references)
	t.Reason, t.DeadLetters = job.GetReason(), len(job.GetDeadLetters())
	for i := range t.Tasks {
		if i < len(job.GetProgress()) {
			t.Tasks[i].set(job.GetProgress()[i])
		}
	}
	return t
}

// Add applies the job's next event.
func (t *Tally) Add(event *tilthv1.JobEvent) {
	t.Events++
	t.Last = event.GetAt().AsTime()
	switch e := event.GetEvent().(type) {
	case *tilthv1.JobEvent_State:
		if t.State, t.Reason = e.State.GetState(), e.State.GetReason(); t.ended() {
			t.Status = nil
		}
	case *tilthv1.JobEvent_DeadLetter:
		t.DeadLetters++
	case *tilthv1.JobEvent_Retried:
		t.DeadLetters--
	case *tilthv1.JobEvent_Proposed:
		t.SearchSeconds += e.Proposed.GetSearchSeconds()
	case *tilthv1.JobEvent_Trial:
		if i := int(e.Trial.GetTaskIndex()); i < len(t.Tasks) {
			t.Tasks[i].add(e.Trial)
			t.Curve.add(t)
		}
	}
}

// Trials counts the recorded trials of all tasks.
func (t *Tally) Trials() (n int) {
	for i := range t.Tasks {
		n += t.Tasks[i].Trials
	}
	return n
}

// Done returns the spent part of a job's budget, from 0 to 1; 0 without a budget.
func Done(job *tilthv1.Job) (part float64) {
	trials, budget := 0.0, job.GetSpec().GetBudget()
	for _, p := range job.GetProgress() {
		trials += float64(p.GetTrials())
	}
	if n := budget.GetTrials(); n > 0 {
		part = trials / float64(n)
	}
	if limit := budget.GetTime().AsDuration(); limit > 0 {
		part = max(part, job.GetTimeSpent().AsDuration().Seconds()/limit.Seconds())
	}
	return min(part, 1)
}

// KnownTrials counts the trials of earlier jobs that this one continues from.
func (t *Tally) KnownTrials() (n int) {
	for i := range t.Tasks {
		n += t.Tasks[i].KnownTrials
	}
	return n
}

// Errors counts the failures of all tasks by class.
func (t *Tally) Errors() map[string]int {
	all := map[string]int{}
	for i := range t.Tasks {
		for class, n := range t.Tasks[i].Errors {
			all[class] += n
		}
	}
	return all
}

// BestSeconds returns the weighted sum of the tasks' best latencies, or 0 if a task lacks one.
func (t *Tally) BestSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.BestSeconds })
}

// UntunedSeconds returns the same sum with default schedules.
func (t *Tally) UntunedSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.UntunedSeconds })
}

// LimitSeconds returns the same sum at the machine's limits, or 0 if they are unknown.
func (t *Tally) LimitSeconds() float64 {
	return t.sum(func(task *Task) float64 { limit, _ := task.Limit(); return limit })
}

func (t *Tally) sum(seconds func(*Task) float64) (total float64) {
	for i := range t.Tasks {
		s := seconds(&t.Tasks[i])
		if s == 0 {
			return 0
		}
		total += s * t.Tasks[i].Weight
	}
	return total
}

// ended reports whether the job has ended.
func (t *Tally) ended() bool {
	switch t.State {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}

// NoneMeasured reports whether no trial was measured and no task has an earlier correct one.
func (t *Tally) NoneMeasured() bool { return !t.anyCorrect() && t.Trials() == 0 }

// NoneCorrect reports whether there were trials, but no correct one of any task, including earlier ones.
func (t *Tally) NoneCorrect() bool { return !t.anyCorrect() && t.Trials() > 0 }

func (t *Tally) anyCorrect() bool {
	return slices.ContainsFunc(t.Tasks, func(task Task) bool { return task.BestSeconds > 0 })
}

// Elapsed returns the time from the job's creation to its latest event.
func (t *Tally) Elapsed() time.Duration { return t.Last.Sub(t.Started) }

// UniqueName returns name, followed by a number if taken contains it, and updates taken.
func UniqueName(taken map[string]int, name string) string {
	taken[name]++
	if n := taken[name]; n > 1 {
		return UniqueName(taken, fmt.Sprintf("%s #%d", name, n))
	}
	return name
}

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
