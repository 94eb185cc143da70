package trials

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tilth-dev/tilth/internal/show"
)

// WriteTable writes what tuning achieved: a row a task, and a row for the model, which is the sum of its tasks.
func (t *Tally) WriteTable(w io.Writer) error {
	table := show.NewTable("TASK", ">TIMES", ">UNTUNED", ">TUNED", ">SPEED-UP", ">GFLOP/s", ">TRIALS", "ERRORS")
	for i := range t.Tasks {
		task := &t.Tasks[i]
		table.Row(task.Name, fmt.Sprintf("%gx", task.Weight), show.Seconds(task.UntunedSeconds), show.Seconds(task.BestSeconds),
			show.Ratio(task.UntunedSeconds, task.BestSeconds), show.GFLOPS(task.Flop, task.BestSeconds),
			strconv.Itoa(task.Trials), show.Counts(task.Errors))
	}
	var flop float64
	for _, task := range t.Tasks {
		flop += task.Flop * task.Weight
	}
	untuned, best := t.UntunedSeconds(), t.BestSeconds()
	table.Row("all tasks", "", show.Seconds(untuned), show.Seconds(best), show.Ratio(untuned, best),
		show.GFLOPS(flop, best), strconv.Itoa(t.Trials()), show.Counts(t.Errors()))
	return table.Write(w)
}

// Summary is what tuning achieved, for scripts.
type Summary struct {
	Job            string         `json:"job"`
	State          string         `json:"state"`
	Reason         string         `json:"reason"`
	Target         string         `json:"target"`
	Records        string         `json:"records,omitempty"`
	Tracker        string         `json:"tracker,omitempty"`
	ElapsedSeconds float64        `json:"elapsed_s"`
	Trials         int            `json:"trials"`
	Errors         map[string]int `json:"errors"`
	DeadLetters    int            `json:"dead_letters"`
	// UntunedSeconds and BestSeconds are the sums over all tasks, each as often as it occurs; null while a task has none.
	UntunedSeconds *float64      `json:"untuned_s"`
	BestSeconds    *float64      `json:"best_s"`
	Tasks          []TaskSummary `json:"tasks"`
}

// TaskSummary is one task of a Summary.
type TaskSummary struct {
	Task           string         `json:"task"`
	Weight         float64        `json:"weight"`
	Flop           float64        `json:"flop"`
	Trials         int            `json:"trials"`
	Errors         map[string]int `json:"errors"`
	UntunedSeconds *float64       `json:"untuned_s"`
	BestSeconds    *float64       `json:"best_s"`
	BuildSeconds   float64        `json:"build_s"`
	RunSeconds     float64        `json:"run_s"`
}

// Summary sums up the tally; what it does not know (job, target, where the records are) is left to the caller.
func (t *Tally) Summary() Summary {
	s := Summary{
		State: show.JobState(t.State), Reason: t.Reason, ElapsedSeconds: t.Elapsed().Seconds(), Trials: t.Trials(),
		Errors: t.Errors(), DeadLetters: t.DeadLetters, UntunedSeconds: positive(t.UntunedSeconds()),
		BestSeconds: positive(t.BestSeconds()), Tasks: []TaskSummary{},
	}
	for i := range t.Tasks {
		task := &t.Tasks[i]
		s.Tasks = append(s.Tasks, TaskSummary{
			Task: task.Name, Weight: task.Weight, Flop: task.Flop, Trials: task.Trials, Errors: task.Errors,
			UntunedSeconds: positive(task.UntunedSeconds), BestSeconds: positive(task.BestSeconds),
			BuildSeconds: task.BuildSeconds, RunSeconds: task.RunSeconds,
		})
	}
	return s
}
