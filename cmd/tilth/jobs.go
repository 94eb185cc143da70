package main

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
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

// clientFlags connects to a tracker.
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

// onTracker returns a command that connects to the tracker of its flags, which it adds.
func (a *app) onTracker(c *cobra.Command, f *clientFlags, work func(context.Context, *client.Client, []string) error) *cobra.Command {
	f.add(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		tracker, err := f.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		return work(ctx, tracker, args)
	})
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
	// Wait is absent while the job makes progress, is paused or has ended.
	Wait *waitView `json:"wait,omitempty"`
	// TimeSpent is the used time budget; absent until a tuner has started.
	TimeSpent *float64 `json:"time_spent_s,omitempty"`
	// TimeBudget is the time budget; absent without a limit.
	TimeBudget *float64 `json:"time_budget_s,omitempty"`
}

// waitView is why a job makes no progress.
type waitView struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Since   string `json:"since,omitempty"`
	// NothingCanRun is set if the job does not merely wait for its turn. Its time budget is then suspended.
	NothingCanRun bool `json:"nothing_can_run"`
}

func newWaitView(w *tilthv1.Wait) *waitView {
	if w == nil {
		return nil
	}
	return &waitView{Reason: wire.WaitReason(w.GetReason()), Message: w.GetMessage(), Since: instant(w.GetSince()), NothingCanRun: w.GetNothingCanRun()}
}

// text returns the reason, or "".
func (w *waitView) text() string {
	switch {
	case w == nil:
		return ""
	case w.Since == "":
		return w.Message
	}
	return "since " + w.Since + ": " + w.Message
}

// why returns the job's reason, or what it waits for.
func (r jobRow) why() string {
	if r.Wait != nil {
		return "waiting: " + r.Wait.Message
	}
	return r.Reason
}

// time formats the used time budget.
func (r jobRow) time() string {
	switch {
	case r.TimeSpent == nil:
		return ""
	case r.TimeBudget == nil:
		return humanize.Clock(inSeconds(*r.TimeSpent))
	}
	return humanize.Clock(inSeconds(*r.TimeSpent)) + " of " + humanize.Clock(inSeconds(*r.TimeBudget))
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// stamp formats a time, or returns "" if it is unknown, for example for a job with damaged rows.
func stamp(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}

func newJobRow(j *tilthv1.Job) jobRow {
	spec := j.GetSpec()
	row := jobRow{
		Job: j.GetId(), Name: spec.GetName(), Owner: spec.GetOwner(), Priority: int(cmp.Or(spec.GetPriority(), wire.DefaultPriority)), Private: spec.GetPrivate(), State: wire.JobState(j.GetState()), Reason: j.GetReason(),
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
