package trials

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Tally follows one job.
type Tally struct {
	Tasks []Task
	// State and Reason are the job's last.
	State  tilthv1.JobState
	Reason string
	// Events counts all events, and so is the sequence number of the last.
	Events int
	// DeadLetters counts batches that the farm gave up on and that are not tried again.
	DeadLetters int
	// Started is when the job was made; Last when its last event happened.
	Started, Last time.Time
	// SearchSeconds is what finding the candidates took, as far as tuners tell.
	SearchSeconds float64
	// Status is how the tracker says that the job stands; nil when it does not say, or the job has ended.
	Status *tilthv1.JobStatus
	// StatusAt is when it came.
	StatusAt time.Time
	// Curve is how the latency of the whole came down.
	Curve Curve
}

// NewTally begins to follow a job before its first event. references has what is known of each task beforehand; it may
// be shorter than the tasks.
func NewTally(job *tilthv1.Job, references []Reference) *Tally {
	t := &Tally{State: job.GetState(), Started: job.GetCreatedAt().AsTime()}
	t.Last = t.Started
	t.Begin(job, references)
	return t
}

// Begin takes the tasks of a job, none of which the tally has: a model's are known once that was read.
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

// OfProgress is a tally of what the job itself says of its tasks, without its events: it has no curve and no times.
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

// Add takes the job's next event.
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

// KnownTrials counts the trials of earlier jobs that this one goes on from.
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

// BestSeconds is the sum of the tasks' best latencies, each as often as the task occurs; 0 while one has none.
func (t *Tally) BestSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.BestSeconds })
}

// UntunedSeconds is the same sum with default schedules.
func (t *Tally) UntunedSeconds() float64 {
	return t.sum(func(task *Task) float64 { return task.UntunedSeconds })
}

// LimitSeconds is the same sum at the machine's limits; 0 when they are not known.
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

// ended says that nothing more is to come.
func (t *Tally) ended() bool {
	switch t.State {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}

// Paused says that the job waits until somebody resumes it.
func (t *Tally) Paused() bool { return t.State == tilthv1.JobState_JOB_STATE_PAUSED }

// Waits says why nothing of the job is being done; empty while something is, or that is not known.
func (t *Tally) Waits() string { return t.Status.GetWait().GetMessage() }

// NothingCame says that no trial was measured, and no earlier one of any task is known to be right.
func (t *Tally) NothingCame() bool {
	for i := range t.Tasks {
		if t.Tasks[i].BestSeconds > 0 {
			return false
		}
	}
	return t.Trials() == 0
}

// NothingRight says that there were trials, and not one of any task, earlier ones included, was right.
func (t *Tally) NothingRight() bool {
	for i := range t.Tasks {
		if t.Tasks[i].BestSeconds > 0 {
			return false
		}
	}
	return t.Trials() > 0
}

// Elapsed is the time from the job's making to its last event.
func (t *Tally) Elapsed() time.Duration { return t.Last.Sub(t.Started) }
