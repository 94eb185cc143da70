package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

const jobsLong = `Submit, list, show, watch, pause, cancel and delete a farm's jobs, and fetch packages.

A job is named by its id, or by the id's number and as much of the rest as no other job
of that number has: job-1, job-00000001-ab. show, watch, package, pause, resume, retry and
cancel also take --last, for the job that was submitted last.`

func newJobs(a *app) *cobra.Command {
	c := branch("jobs", "Submit, list, show, watch, pause, cancel and delete a farm's jobs",
		newJobsSubmit(a), newJobsList(a), newJobsShow(a), newJobsWatch(a), newJobsCancel(a), newJobsDelete(a), newJobsPause(a), newJobsResume(a), newJobsRetry(a), newJobsOwners(a), newJobsPackage(a))
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
func (a *app) onTracker(c *cobra.Command, work func(context.Context, *client.Client, []string) error) *cobra.Command {
	var f clientFlags
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
	// Progress is the spent share of the budget, from 0 to 1; absent without one.
	Progress float64 `json:"progress,omitempty"`
	// BestSeconds is the model's latency, UntunedSeconds that with default schedules; absent while a task lacks one.
	BestSeconds    float64 `json:"best_s,omitempty"`
	UntunedSeconds float64 `json:"untuned_s,omitempty"`
}

// waitView is why a job makes no progress.
type waitView struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Since   string `json:"since,omitempty"`
	// NothingCanRun is set if the job does not merely wait for its turn. Its time budget is then suspended.
	NothingCanRun bool `json:"nothing_can_run"`
	// Position is the place in the queue of QueueLength; absent unless the job waits for its turn.
	Position    int `json:"position,omitempty"`
	QueueLength int `json:"queue_length,omitempty"`
}

func newWaitView(w *tilthv1.Wait) *waitView {
	if w == nil {
		return nil
	}
	return &waitView{
		Reason: wire.WaitReason(w.GetReason()), Message: w.GetMessage(), Since: instant(w.GetSince()), NothingCanRun: w.GetNothingCanRun(),
		Position: int(w.GetPosition()), QueueLength: int(w.GetQueueLength()),
	}
}

// position formats the place in the queue, or returns "".
func (w *waitView) position() string {
	if w == nil || w.Position == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", w.Position, w.QueueLength)
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

func newJobRow(j *tilthv1.Job) jobRow {
	spec := j.GetSpec()
	row := jobRow{
		Job: j.GetId(), Name: spec.GetName(), Owner: spec.GetOwner(), Priority: int(cmp.Or(spec.GetPriority(), wire.DefaultPriority)), Private: spec.GetPrivate(), State: wire.JobState(j.GetState()), Reason: j.GetReason(),
		Target: spec.GetTarget().GetFingerprint(), Tuner: spec.GetTuner(), Tasks: len(spec.GetTasks()),
		DeadLetters: len(j.GetDeadLetters()), Created: instant(j.GetCreatedAt()),
		Started: instant(j.GetStartedAt()), Paused: instant(j.GetPausedAt()), Ended: instant(j.GetEndedAt()),
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
	tally := progress.OfProgress(j, nil)
	row.Trials, row.Progress = tally.Trials(), progress.Done(j)
	if !j.GetTruncated() {
		row.BestSeconds, row.UntunedSeconds = tally.BestSeconds(), tally.UntunedSeconds()
	}
	return row
}

// jobFlag accepts the latest job instead of a named one, and prefixes of ids.
type jobFlag struct{ last bool }

func (f *jobFlag) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.last, "last", false, "use the most recent job instead of JOB")
}

// args requires a job id, unless --last is given.
func (f *jobFlag) args(c *cobra.Command, args []string) error {
	if f.last && len(args) > 0 {
		return usagef("%q and --last name a job each: give either JOB or --last", args[0])
	}
	if f.last {
		return nil
	}
	return cobra.ExactArgs(1)(c, args)
}

// argsBefore is args for commands with further arguments after the job id.
func (f *jobFlag) argsBefore(c *cobra.Command, args []string) error {
	if !f.last {
		return cobra.MinimumNArgs(1)(c, args)
	}
	for _, arg := range args {
		if !strings.Contains(arg, ".") { // batch ids contain dots
			return usagef("%q and --last name a job each: give either JOB or --last", arg)
		}
	}
	return nil
}

// onJob is onTracker for a command whose argument, or --last, names a job.
func (a *app) onJob(c *cobra.Command, work func(ctx context.Context, tracker *client.Client, id string) error) *cobra.Command {
	var job jobFlag
	job.add(c)
	c.Args = job.args
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		id, _, err := job.find(ctx, tracker, args)
		if err != nil {
			return err
		}
		return work(ctx, tracker, id)
	})
}

// find returns the job's id and the remaining arguments.
func (f *jobFlag) find(ctx context.Context, tracker *client.Client, args []string) (id string, rest []string, err error) {
	if f.last {
		id, err = tracker.LastJob(ctx)
		return id, args, err
	}
	id, err = tracker.FindJob(ctx, args[0])
	return id, args[1:], err
}
