package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/cmd/tilth/display"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// jobView is a job with its tasks.
type jobView struct {
	jobRow
	TaskProgress []taskView       `json:"task_progress"`
	Letters      []deadLetterView `json:"dead_letter_list"`
	// Failures holds the last failure of each class that no candidate caused.
	Failures []progress.FarmFailure `json:"failures"`
	Outage   *outageView            `json:"outage,omitempty"`

	tally *progress.Tally
}

// taskView is the progress of one task.
type taskView struct {
	Task     string  `json:"task"`
	Weight   float64 `json:"weight"`
	Flop     float64 `json:"flop"`
	Workload string  `json:"workload"`
	Trials   int     `json:"trials"`
	Proposed int     `json:"proposed"`
	// InFlight counts proposed, unrecorded trials; 0 once the job has ended.
	InFlight    int            `json:"in_flight"`
	KnownTrials int            `json:"known_trials"`
	Errors      map[string]int `json:"errors"`
	// Messages holds the first message of each error class.
	Messages     map[string]string `json:"messages"`
	BestSeconds  *float64          `json:"best_s"`
	LimitSeconds *float64          `json:"limit_s"`
	// BestInterval is the confidence interval of the best median. RemeasuredFrom is the earlier latency of
	// the best candidate if it was found slower when measured again.
	BestInterval   *progress.Interval `json:"best_interval"`
	RemeasuredFrom *float64           `json:"remeasured_from_s,omitempty"`

	ofLimit, uncertainty string
}

// deadLetterView is an abandoned batch.
type deadLetterView struct {
	Batch    string `json:"batch"`
	Task     string `json:"task"`
	Error    string `json:"error"`
	Message  string `json:"message"`
	Attempts int    `json:"attempts"`
	// Agents lists the agents that failed the batch.
	Agents []string `json:"agents"`
}

func newJobsShow(a *app) *cobra.Command {
	var drawing plotFlag
	c := &cobra.Command{
		Use: "show JOB", Short: "Show a job and the progress of its tasks",
		Example: "  tilth jobs show job-00000001\n  tilth jobs show job-00000001 --json | jq .task_progress\n" +
			"  tilth jobs show --last --plot curve.svg",
	}
	drawing.add(c)
	a.tableFlags(c)
	return a.onJob(c, func(ctx context.Context, tracker *client.Client, id string) error {
		j, err := tracker.Job(ctx, id)
		if err != nil {
			return err
		}
		if err := drawPast(ctx, tracker, j, drawing); err != nil {
			return err
		}
		view := newJobView(j)
		if view.Outage, err = outage(ctx, tracker); err != nil {
			return err
		}
		return a.show(view, view.write)
	})
}

// errPresent ends reading a job's events at the present.
var errPresent = errors.New("all trials were seen")

// drawPast plots a job up to now from its events.
func drawPast(ctx context.Context, tracker *client.Client, j *tilthv1.Job, drawing plotFlag) error {
	if drawing == "" {
		return nil
	}
	if err := drawing.begin(); err != nil {
		return err
	}
	tally := progress.NewTally(j, jobclient.References(j.GetSpec()))
	recorded := newJobRow(j).Trials
	if recorded > 0 {
		err := tracker.Watch(ctx, &tilthv1.WatchJobRequest{JobId: j.GetId()}, func(event *tilthv1.JobEvent) error {
			if tally.Add(event); j.GetEndedAt() == nil && tally.Trials() >= recorded {
				return errPresent
			}
			return nil
		}, nil)
		if err != nil && !errors.Is(err, errPresent) {
			return err
		}
	}
	return drawing.write(j, tally)
}

func newJobView(j *tilthv1.Job) jobView {
	view := jobView{jobRow: newJobRow(j), TaskProgress: []taskView{}, Letters: []deadLetterView{}}
	view.tally = progress.OfProgress(j, jobclient.References(j.GetSpec()))
	view.Failures = view.tally.FarmFailures
	for i := range view.tally.Tasks {
		task, spec := &view.tally.Tasks[i], j.GetSpec().GetTasks()[i]
		limit, _ := task.Limit()
		view.TaskProgress = append(view.TaskProgress, taskView{
			Task: task.Name, Weight: task.Weight, Flop: task.Flop, Workload: spec.GetWorkloadDigest(), Trials: task.Trials,
			Proposed: proposed(j, i), InFlight: inFlight(j, i, task.Trials), KnownTrials: task.KnownTrials, Errors: task.Errors, Messages: task.Messages,
			BestSeconds: progress.Positive(task.BestSeconds), LimitSeconds: progress.Positive(limit), ofLimit: task.OfLimit(),
			BestInterval: task.BestInterval(), RemeasuredFrom: progress.Positive(task.RemeasuredFrom), uncertainty: task.Uncertainty(),
		})
	}
	for _, d := range j.GetDeadLetters() {
		view.Letters = append(view.Letters, deadLetterView{
			Batch: d.GetBatchId(), Task: taskAt(j, int(d.GetTaskIndex())).GetName(), Error: wire.ErrorClass(d.GetError()),
			Message: d.GetMessage(), Attempts: int(d.GetAttempts()), Agents: append([]string{}, d.GetAgents()...),
		})
	}
	return view
}

// proposed returns the number of proposed trials of a task.
func proposed(j *tilthv1.Job, i int) int {
	if i >= len(j.GetProgress()) {
		return 0
	}
	return int(j.GetProgress()[i].GetProposed())
}

// inFlight returns the number of pending trials of a task, or 0 if the job has ended.
func inFlight(j *tilthv1.Job, i, trials int) int {
	if j.GetEndedAt() != nil {
		return 0
	}
	return max(proposed(j, i)-trials, 0)
}

// taskAt returns a task of a job. An unknown index yields a task with only a name.
func taskAt(j *tilthv1.Job, i int) *tilthv1.TaskSpec {
	if tasks := j.GetSpec().GetTasks(); i < len(tasks) {
		return tasks[i]
	}
	return &tilthv1.TaskSpec{Name: fmt.Sprintf("unknown task %d", i)}
}

// private describes who may see the job, or returns "" for everyone.
func (v jobView) private() string {
	if v.Private {
		return "seen by its owner and admins only"
	}
	return ""
}

func (v jobView) write(w io.Writer) error {
	head := humanize.NewFacts("job:", v.Job)
	for _, line := range [][2]string{
		{"name:", v.Name}, {"owner:", v.Owner}, {"priority:", strconv.Itoa(v.Priority)}, {"private:", v.private()}, {"state:", v.State}, {"reason:", v.Reason}, {"target:", v.Target},
		{"tuner:", v.Tuner}, {"created:", v.Created}, {"started:", v.Started}, {"paused:", v.Paused}, {"ended:", v.Ended},
		{"time:", v.time()}, {"waiting:", v.Wait.text()}, {"outage:", v.Outage.text()},
	} {
		if line[1] != "" {
			head.Row(line[0], line[1])
		}
	}
	if err := head.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	table := humanize.NewTable("TASK", ">TIMES", ">BEST", "INTERVAL", ">GFLOP/s", "OF LIMIT", ">TRIALS", ">IN FLIGHT", ">KNOWN", "ERRORS").Errors("ERRORS").
		Optional("KNOWN", "IN FLIGHT", "TIMES", "INTERVAL", "OF LIMIT", "GFLOP/s")
	for _, t := range v.TaskProgress {
		rate := humanize.Missing
		if t.BestSeconds != nil {
			rate = humanize.GFLOPS(t.Flop, *t.BestSeconds)
		}
		table.Row(t.Task, fmt.Sprintf("%gx", t.Weight), seconds(t.BestSeconds), t.uncertainty, rate, t.ofLimit, strconv.Itoa(t.Trials),
			strconv.Itoa(t.InFlight), strconv.Itoa(t.KnownTrials), humanize.Counts(t.Errors))
	}
	if err := errors.Join(table.Write(w), v.tally.WriteFailures(w)); err != nil {
		return err
	}
	if len(v.Letters) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nBatches given up ('tilth jobs retry %s' has them tried again):\n", v.Job)
	letters := humanize.NewTable("BATCH", "TASK", "ERROR", ">ATTEMPTS", "ON", "MESSAGE").Errors("ERROR")
	for _, d := range v.Letters {
		letters.Row(d.Batch, d.Task, d.Error, strconv.Itoa(d.Attempts), strings.Join(d.Agents, ", "), d.Message)
	}
	return letters.Write(w)
}

func newJobsWatch(a *app) *cobra.Command {
	var tracker trackerFlags
	var wanted jobFlag
	var flags followFlags
	c := &cobra.Command{
		Use: "watch JOB", Short: "Show a job from its beginning until it ends",
		Long:    "Show a job from its beginning until it ends. Interrupting this command does not end the job.",
		Example: "  tilth jobs watch job-00000001\n  tilth jobs watch --last --log trials.jsonl --quiet",
		Args:    wanted.args,
	}
	tracker.add(c, defaultTracker)
	wanted.add(c)
	flags.add(a, c)
	flags.level.add(c, slog.LevelWarn)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		logs := &relay{to: a.stderr}
		farm, err := tracker.dial(flags.level.logger(logs))
		if err != nil {
			return err
		}
		defer farm.Close()
		id, _, err := wanted.find(ctx, farm, args)
		if err != nil {
			return err
		}
		j, err := farm.Job(ctx, id)
		if err != nil {
			return err
		}
		budget := j.GetSpec().GetBudget()
		if err := flags.open(); err != nil {
			return err
		}
		w := flags.newFollower(a, j, display.Budget{Trials: int(budget.GetTrials()), Time: budget.GetTime().AsDuration()})
		logs.set(w.display)
		err = w.watch(ctx, farm)
		logs.set(a.stderr)
		if err := errors.Join(err, w.close()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return w.finish(a, progress.Summary{Tracker: tracker.addr})
	})
}
