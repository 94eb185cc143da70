// Package trials sums up a job's events: for people in progress displays and closing tables, for scripts in a log.
package trials

import (
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Task is what is known of one task of a job.
type Task struct {
	// Name is unique within the job.
	Name   string
	Weight float64
	Flop   float64
	// Trials counts those recorded, failures included.
	Trials int
	// Errors counts failures by class, e.g. "timeout".
	Errors map[string]int
	// UntunedSeconds is the latency of the default schedule, BestSeconds that of the fastest; 0 = not measured.
	UntunedSeconds, BestSeconds float64
	// BuildSeconds and RunSeconds are the sums over all trials.
	BuildSeconds, RunSeconds float64

	untuned string // digest of the default schedule's trace
}

// Tally follows one job.
type Tally struct {
	Tasks []Task
	// State and Reason are the job's last.
	State  tilthv1.JobState
	Reason string
	// Events counts all events, and so is the sequence number of the last.
	Events int
	// DeadLetters counts batches that the farm gave up on.
	DeadLetters int
	// Started is when the job was made; Last when its last event happened.
	Started, Last time.Time
}

// NewTally begins to follow a job before its first event. untuned has, for each task, the digest of its default
// schedule's trace, or an empty one where that is not known.
func NewTally(job *tilthv1.Job, untuned []string) *Tally {
	t := &Tally{State: job.GetState(), Started: job.GetCreatedAt().AsTime()}
	t.Last = t.Started
	names := map[string]int{}
	for i, task := range job.GetSpec().GetTasks() {
		one := Task{
			Name: UniqueName(names, task.GetName()), Weight: task.GetWeight(), Flop: task.GetFlop(), Errors: map[string]int{},
		}
		if i < len(untuned) {
			one.untuned = untuned[i]
		}
		t.Tasks = append(t.Tasks, one)
	}
	return t
}

// Add takes the job's next event.
func (t *Tally) Add(event *tilthv1.JobEvent) {
	t.Events++
	t.Last = event.GetAt().AsTime()
	switch e := event.GetEvent().(type) {
	case *tilthv1.JobEvent_State:
		t.State, t.Reason = e.State.GetState(), e.State.GetReason()
	case *tilthv1.JobEvent_DeadLetter:
		t.DeadLetters++
	case *tilthv1.JobEvent_Trial:
		if i := int(e.Trial.GetTaskIndex()); i < len(t.Tasks) {
			t.Tasks[i].add(e.Trial)
		}
	}
}

func (t *Task) add(trial *tilthv1.TrialRecorded) {
	m := trial.GetMeasurement()
	t.Trials++
	t.BuildSeconds += m.GetBuildSeconds()
	t.RunSeconds += m.GetRunSeconds()
	if best := trial.GetBestSeconds(); best > 0 {
		t.BestSeconds = best
	}
	if class := show.ErrorClass(m.GetError()); class != "" {
		t.Errors[class]++
	} else if m.GetCandidate().GetDigest() == t.untuned {
		t.UntunedSeconds = m.GetLatencySeconds()
	}
}

// Trials counts the recorded trials of all tasks.
func (t *Tally) Trials() (n int) {
	for i := range t.Tasks {
		n += t.Tasks[i].Trials
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

// BestSeconds is the sum of the tasks' best latencies, each as often as the task occurs; 0 while one has none.
func (t *Tally) BestSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.BestSeconds })
}

// UntunedSeconds is the same sum with default schedules.
func (t *Tally) UntunedSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.UntunedSeconds })
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

// Elapsed is the time from the job's making to its last event.
func (t *Tally) Elapsed() time.Duration { return t.Last.Sub(t.Started) }
