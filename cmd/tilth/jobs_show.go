package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// jobView is a job with its tasks.
type jobView struct {
	jobRow
	TaskProgress []taskView       `json:"task_progress"`
	Letters      []deadLetterView `json:"dead_letter_list"`
}

// taskView is the progress of one task.
type taskView struct {
	Task        string         `json:"task"`
	Weight      float64        `json:"weight"`
	Flop        float64        `json:"flop"`
	Workload    string         `json:"workload"`
	Trials      int            `json:"trials"`
	Proposed    int            `json:"proposed"`
	Errors      map[string]int `json:"errors"`
	BestSeconds *float64       `json:"best_s"`
}

// deadLetterView is a batch that the farm gave up on.
type deadLetterView struct {
	Batch    string `json:"batch"`
	Task     string `json:"task"`
	Error    string `json:"error"`
	Message  string `json:"message"`
	Attempts int    `json:"attempts"`
}

func newJobsShow(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "show JOB", Short: "Show a job and the progress of its tasks",
		Example: "  tilth jobs show job-00000001\n  tilth jobs show job-00000001 --json | jq .task_progress",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		j, err := tracker.Job(ctx, args[0])
		if err != nil {
			return err
		}
		view := newJobView(j)
		if asJSON {
			return writeJSON(a.stdout, view)
		}
		return view.write(a.stdout)
	})
}

func newJobView(j *tilthv1.Job) jobView {
	view := jobView{jobRow: newJobRow(j), TaskProgress: []taskView{}, Letters: []deadLetterView{}}
	for i, p := range j.GetProgress() {
		task := taskAt(j, i)
		t := taskView{
			Task: task.GetName(), Weight: task.GetWeight(), Flop: task.GetFlop(),
			Workload: task.GetWorkloadDigest(), Trials: int(p.GetTrials()), Proposed: int(p.GetProposed()), Errors: map[string]int{},
		}
		for class, n := range p.GetErrors() {
			t.Errors[show.ErrorClassName(class)] = int(n)
		}
		if best := p.GetBestSeconds(); best > 0 {
			t.BestSeconds = &best
		}
		view.TaskProgress = append(view.TaskProgress, t)
	}
	for _, d := range j.GetDeadLetters() {
		view.Letters = append(view.Letters, deadLetterView{
			Batch: d.GetBatchId(), Task: taskAt(j, int(d.GetTaskIndex())).GetName(), Error: show.ErrorClass(d.GetError()),
			Message: d.GetMessage(), Attempts: int(d.GetAttempts()),
		})
	}
	return view
}

// taskAt is a task of a job; a tracker that speaks of one that is not there gets one with a name only.
func taskAt(j *tilthv1.Job, i int) *tilthv1.TaskSpec {
	if tasks := j.GetSpec().GetTasks(); i < len(tasks) {
		return tasks[i]
	}
	return &tilthv1.TaskSpec{Name: fmt.Sprintf("unknown task %d", i)}
}

func (v jobView) write(w io.Writer) error {
	head := show.NewTable("job:", v.Job)
	for _, line := range [][2]string{
		{"name:", v.Name}, {"owner:", v.Owner}, {"state:", v.State}, {"reason:", v.Reason}, {"target:", v.Target},
		{"tuner:", v.Tuner}, {"created:", v.Created}, {"started:", v.Started}, {"ended:", v.Ended},
	} {
		if line[1] != "" {
			head.Row(line[0], line[1])
		}
	}
	if err := head.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	table := show.NewTable("TASK", ">TIMES", ">BEST", ">GFLOP/s", ">TRIALS", ">IN FLIGHT", "ERRORS")
	for _, t := range v.TaskProgress {
		rate := show.Missing
		if t.BestSeconds != nil {
			rate = show.GFLOPS(t.Flop, *t.BestSeconds)
		}
		table.Row(t.Task, times(t.Weight), seconds(t.BestSeconds), rate, strconv.Itoa(t.Trials),
			strconv.Itoa(t.Proposed-t.Trials), show.Counts(t.Errors))
	}
	if err := table.Write(w); err != nil || len(v.Letters) == 0 {
		return err
	}
	fmt.Fprintln(w, "\nBatches given up:")
	letters := show.NewTable("BATCH", "TASK", "ERROR", ">ATTEMPTS", "MESSAGE")
	for _, d := range v.Letters {
		letters.Row(d.Batch, d.Task, d.Error, strconv.Itoa(d.Attempts), d.Message)
	}
	return letters.Write(w)
}
