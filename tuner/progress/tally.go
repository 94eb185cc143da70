package progress

import (
	"fmt"
	"slices"
	"time"

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
