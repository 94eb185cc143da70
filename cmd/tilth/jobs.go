package main

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const jobsLong = `Submit, list, show, watch, pause, cancel and delete a farm's jobs.

A job is named by its id, or by the id's number and as much of the rest as no other job
of that number has: job-1, job-00000001-ab. show, watch, pause, resume, retry and cancel
also take --last, for the job that was submitted last.`

func newJobs(a *app) *cobra.Command {
	c := branch("jobs", "Submit, list, show, watch, pause, cancel and delete a farm's jobs",
		newJobsSubmit(a), newJobsList(a), newJobsShow(a), newJobsWatch(a), newJobsCancel(a), newJobsDelete(a), newJobsPause(a), newJobsResume(a), newJobsRetry(a), newJobsOwners(a))
	c.Long = jobsLong
	return c
}

// clientFlags lead to a tracker.
type clientFlags struct {
	tracker trackerFlags
	level   logFlag
}

func (f *clientFlags) add(c *cobra.Command) {
	f.tracker.add(c, defaultTracker)
	f.level.add(c, slog.LevelWarn)
}

func (f *clientFlags) dial(a *app) (*client.Client, error) {
	return f.tracker.dial(f.level.logger(a.stderr))
}

// jobRow is a job in a listing.
type jobRow struct {
	Job         string `json:"job"`
	Name        string `json:"name"`
	Owner       string `json:"owner"`
	Priority    int    `json:"priority"`
	Private     bool   `json:"private"`
	State       string `json:"state"`
	Reason      string `json:"reason"`
	Target      string `json:"target"`
	Tuner       string `json:"tuner"`
	Tasks       int    `json:"tasks"`
	Trials      int    `json:"trials"`
	DeadLetters int    `json:"dead_letters"`
	Created     string `json:"created_at"`
	Started     string `json:"started_at,omitempty"`
	Paused      string `json:"paused_at,omitempty"`
	Ended       string `json:"ended_at,omitempty"`
	// Wait is absent while something of the job is being done, while it is paused, and when it has ended.
	Wait *waitView `json:"wait,omitempty"`
	// TimeSpent is how much of the budget's time the job had; absent until a tuner had it.
	TimeSpent *float64 `json:"time_spent_s,omitempty"`
	// TimeBudget is the whole of it; absent when there is no limit.
	TimeBudget *float64 `json:"time_budget_s,omitempty"`
}

// waitView is why nothing of a job is being done.
type waitView struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Since   string `json:"since,omitempty"`
	// NothingCanRun says that it is not just others' turn: the budget's time stands still.
	NothingCanRun bool `json:"nothing_can_run"`
}

func newWaitView(w *tilthv1.Wait) *waitView {
	if w == nil {
		return nil
	}
	return &waitView{Reason: names.WaitReason(w.GetReason()), Message: w.GetMessage(), Since: instant(w.GetSince()), NothingCanRun: w.GetNothingCanRun()}
}

// text is empty when nothing is waited for.
func (w *waitView) text() string {
	switch {
	case w == nil:
		return ""
	case w.Since == "":
		return w.Message
	}
	return "since " + w.Since + ": " + w.Message
}

// why is the job's reason in a listing, or what it waits for.
func (r jobRow) why() string {
	if r.Wait != nil {
		return "waits: " + r.Wait.Message
	}
	return r.Reason
}

// time is how much of its budget's time the job had.
func (r jobRow) time() string {
	switch {
	case r.TimeSpent == nil:
		return ""
	case r.TimeBudget == nil:
		return show.Clock(inSeconds(*r.TimeSpent))
	}
	return show.Clock(inSeconds(*r.TimeSpent)) + " of " + show.Clock(inSeconds(*r.TimeBudget))
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// stamp is a time as it is shown; empty where it is not known, as of a job whose rows are damaged.
func stamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}

func newJobRow(j *tilthv1.Job) jobRow {
	spec := j.GetSpec()
	row := jobRow{
		Job: j.GetId(), Name: spec.GetName(), Owner: spec.GetOwner(), Priority: int(cmp.Or(spec.GetPriority(), wire.DefaultPriority)), Private: spec.GetPrivate(), State: names.JobState(j.GetState()), Reason: j.GetReason(),
		Target: spec.GetTarget().GetFingerprint(), Tuner: spec.GetTuner(), Tasks: len(spec.GetTasks()),
		DeadLetters: len(j.GetDeadLetters()), Created: stamp(j.GetCreatedAt()),
		Started: stamp(j.GetStartedAt()), Paused: stamp(j.GetPausedAt()), Ended: stamp(j.GetEndedAt()),
	}
	row.Wait = newWaitView(j.GetWait())
	if spent := j.GetTimeSpent(); spent != nil {
		s := spent.AsDuration().Seconds()
		row.TimeSpent = &s
	}
	if limit := spec.GetBudget().GetTime(); limit != nil {
		s := limit.AsDuration().Seconds()
		row.TimeBudget = &s
	}
	for _, p := range j.GetProgress() {
		row.Trials += int(p.GetTrials())
	}
	return row
}
