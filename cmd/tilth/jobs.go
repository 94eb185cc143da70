package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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
		row.TimeSpent = new(spent.AsDuration().Seconds())
	}
	if limit := spec.GetBudget().GetTime(); limit != nil {
		row.TimeBudget = new(limit.AsDuration().Seconds())
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

func newJobsList(a *app) *cobra.Command {
	var filter client.JobFilter
	var states []string
	c := &cobra.Command{
		Use: "list", Short: "List jobs, newest first",
		Long: `List jobs, newest first. Ended jobs are kept for a time ('tilth tracker --keep-jobs');
deleted ones are counted on standard error. POSITION is the place of a job that waits for
its turn, by its owner's share of the farm and its priority.`,
		Example: "  tilth jobs list\n  tilth jobs list --state queued,running --json\n  tilth jobs list --name resnet",
	}
	a.tableFlags(c)
	c.Flags().IntVar(&filter.Limit, "limit", 100, "number of jobs at most")
	atLeast(c, 1, "limit")
	c.Flags().StringVar(&filter.Name, "name", "", "only jobs with a name that contains this `text`, ignoring case")
	c.Flags().StringVar(&filter.Owner, "owner", "", "only jobs of this `owner`; see 'tilth jobs owners'")
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in these `states`: reading, queued, running, paused, done, failed, cancelled")
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, _ []string) (err error) {
		if filter.States, err = parseStates(states); err != nil {
			return err
		}
		jobs, missing, err := tracker.ListJobs(ctx, filter)
		if err != nil {
			return err
		}
		var rows []jobRow
		for _, j := range jobs {
			rows = append(rows, newJobRow(j))
		}
		table := humanize.NewTable("JOB", "NAME", "OWNER", ">PRIORITY", "STATE", "POSITION", ">PROGRESS", ">TRIALS", ">LATENCY", ">SPEED-UP", "CREATED", "REASON").Times("CREATED").States("STATE").
			Optional("PRIORITY", "CREATED", "POSITION", "TRIALS", "LATENCY")
		if missing > 0 && !a.asJSON {
			fmt.Fprintf(a.stderr, "%d jobs that had ended are no longer kept ('tilth tracker --keep-jobs', 'tilth jobs delete'); their records are\n", missing)
		}
		return list(a, rows, table, func(r jobRow) []string {
			return []string{
				r.Job, r.Name, r.Owner, strconv.Itoa(r.Priority), r.State, r.Wait.position(), humanize.Percent(r.Progress, 1), strconv.Itoa(r.Trials),
				humanize.Seconds(r.BestSeconds), humanize.Ratio(r.UntunedSeconds, r.BestSeconds), cmp.Or(r.Created, humanize.Missing), r.why(),
			}
		})
	})
}

func parseStates(names []string) ([]tilthv1.JobState, error) {
	var states []tilthv1.JobState
	for _, name := range names {
		state := tilthv1.JobState(tilthv1.JobState_value["JOB_STATE_"+strings.ToUpper(name)])
		if state == tilthv1.JobState_JOB_STATE_UNSPECIFIED {
			return nil, usagef("--state %s: want reading, queued, running, paused, done, failed or cancelled", name)
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states, nil
}

// seconds formats an optional latency.
func seconds(s *float64) string {
	if s == nil {
		return humanize.Missing
	}
	return humanize.Seconds(*s)
}

// ownerRow is an owner in a listing; a limit of 0 means none.
type ownerRow struct {
	Owner            string  `json:"owner"`
	Weight           float64 `json:"weight"`
	Waiting          int     `json:"waiting"`
	Jobs             int     `json:"jobs"`
	MaxJobs          int     `json:"max_jobs"`
	Trials           int     `json:"trials"`
	MaxTrials        int     `json:"max_trials"`
	ArtifactBytes    int64   `json:"artifact_bytes"`
	MaxArtifactBytes int64   `json:"max_artifact_bytes"`
	EndedJobs        int     `json:"ended_jobs"`
	KeepJobs         int     `json:"keep_jobs"`
	StoredBytes      int64   `json:"stored_bytes"`
	MaxStoredBytes   int64   `json:"max_stored_bytes"`
}

func newOwnerRow(o *tilthv1.Owner) ownerRow {
	return ownerRow{
		Owner: o.GetName(), Weight: o.GetWeight(), Waiting: int(o.GetWaiting()), Jobs: int(o.GetJobs()), MaxJobs: int(o.GetMaxJobs()),
		Trials: int(o.GetTrials()), MaxTrials: int(o.GetMaxTrials()),
		ArtifactBytes: int64(o.GetArtifactBytes()), MaxArtifactBytes: int64(o.GetMaxArtifactBytes()),
		EndedJobs: int(o.GetEndedJobs()), KeepJobs: int(o.GetKeepJobs()),
		StoredBytes: int64(o.GetStoredBytes()), MaxStoredBytes: int64(o.GetMaxStoredBytes()),
	}
}

func newJobsOwners(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "owners", Short: "List the owners who share the farm, with their use and quotas",
		Long: `List the owners of open jobs: their share, the work that waits for an
agent, and their use of quotas. ENDED counts ended jobs that are kept; the oldest are
deleted beyond the limit ('tilth tracker --help-all').`,
		Example: "  tilth jobs owners",
	}
	a.tableFlags(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, _ []string) error {
		owners, err := tracker.Owners(ctx)
		if err != nil {
			return err
		}
		var rows []ownerRow
		for _, o := range owners {
			rows = append(rows, newOwnerRow(o))
		}
		table := humanize.NewTable("OWNER", ">WEIGHT", ">WAITING", ">JOBS", ">TRIALS", ">ARTIFACTS", ">ENDED", ">STORED")
		return list(a, rows, table, func(r ownerRow) []string {
			return []string{
				r.Owner, fmt.Sprintf("%g", r.Weight), strconv.Itoa(r.Waiting),
				ofLimit(strconv.Itoa(r.Jobs), strconv.Itoa(r.MaxJobs), r.MaxJobs > 0),
				ofLimit(strconv.Itoa(r.Trials), strconv.Itoa(r.MaxTrials), r.MaxTrials > 0),
				ofLimit(humanize.Bytes(r.ArtifactBytes), humanize.Bytes(r.MaxArtifactBytes), r.MaxArtifactBytes > 0),
				ofLimit(strconv.Itoa(r.EndedJobs), strconv.Itoa(r.KeepJobs), r.KeepJobs > 0),
				ofLimit(humanize.Bytes(r.StoredBytes), humanize.Bytes(r.MaxStoredBytes), r.MaxStoredBytes > 0),
			}
		})
	})
}

// ofLimit formats a value and its limit, if any.
func ofLimit(has, may string, limited bool) string {
	if limited {
		return has + " of " + may
	}
	return has
}
