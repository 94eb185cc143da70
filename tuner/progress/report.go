package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// WriteTable writes a row for each task and one for the model, the sum of its tasks. Speed-ups are those within a
// model where they were measured.
func (t *Tally) WriteTable(w io.Writer) error {
	table := humanize.NewTable("TASK", ">TIMES", ">UNTUNED", ">TUNED", "INTERVAL", ">SPEED-UP", ">GFLOP/s", "OF LIMIT", ">TRIALS", "ERRORS", ">ENERGY", ">IN MODEL").
		Errors("ERRORS").Rare("ENERGY", "IN MODEL").Optional("ENERGY", "TIMES", "INTERVAL", "OF LIMIT", "GFLOP/s", "ERRORS", "UNTUNED")
	var flop float64
	for i := range t.Tasks {
		task := &t.Tasks[i]
		table.Row(task.Name, fmt.Sprintf("%gx", task.Weight), humanize.Seconds(task.UntunedSeconds), humanize.Seconds(task.BestSeconds), task.Uncertainty(),
			task.speedUp(), humanize.GFLOPS(task.Flop, task.BestSeconds), task.OfLimit(), strconv.Itoa(task.Trials), humanize.Counts(task.Errors),
			humanize.Joules(task.Best.GetEnergyJoules()), humanize.Seconds(task.InModel.seconds()))
		flop += task.Flop * task.Weight
	}
	untuned, best := t.UntunedSeconds(), t.BestSeconds()
	inModel := t.sum(func(task *Task) float64 { return task.InModel.seconds() })
	speedUp := humanize.Ratio(untuned, best)
	if inModel > 0 {
		speedUp = humanize.Ratio(t.sum(func(task *Task) float64 { return task.InModel.untuned() }), inModel)
	}
	table.Row("all tasks", "", humanize.Seconds(untuned), humanize.Seconds(best), "", speedUp,
		humanize.GFLOPS(flop, best), humanize.Share(t.LimitSeconds(), best), strconv.Itoa(t.Trials()), humanize.Counts(t.Errors()),
		humanize.Joules(t.BestJoules()), humanize.Seconds(inModel))
	return table.Write(w)
}

// speedUp formats the speed-up over the default schedule, within the model or, where that is unknown, alone.
func (t *Task) speedUp() string {
	switch {
	case t.InModel == nil:
		return humanize.Ratio(t.UntunedSeconds, t.BestSeconds)
	case t.InModel.KeepsDefault:
		return "default"
	}
	return humanize.Ratio(t.InModel.Ratio, 1)
}

// BestJoules returns the energy of an execution of the model with the best schedules, or 0 if it was not measured.
func (t *Tally) BestJoules() (joules float64) {
	for i := range t.Tasks {
		joules += t.Tasks[i].Weight * t.Tasks[i].Best.GetEnergyJoules()
	}
	return joules
}

// OfLimit formats how close a task is to the limit of its machine: a share of peak arithmetic or, for
// memory-bound tasks, of the memory rate. The limit is that of the best schedule's algorithm.
func (t *Task) OfLimit() string {
	limit, byBytes := t.Limit()
	text := humanize.Share(limit, t.BestSeconds)
	if byBytes && text != humanize.Missing {
		text += " bytes"
	}
	return text
}

// FarmFailure is a failed attempt of an agent to work for a job. Count is the number of such failures.
type FarmFailure struct {
	Error   string `json:"error"`
	Count   int    `json:"count"`
	Agent   string `json:"agent"`
	At      string `json:"at"`
	Message string `json:"message"`
}

// FarmFailures returns the last failure of each class of a job that no candidate caused. Events do not have them.
func FarmFailures(j *tilthv1.Job) []FarmFailure {
	list := []FarmFailure{}
	for _, f := range j.GetFailures() {
		list = append(list, FarmFailure{
			Error: wire.ErrorClass(f.GetError()), Count: int(f.GetCount()), Agent: f.GetAgent(),
			At: f.GetAt().AsTime().Format(time.RFC3339), Message: f.GetMessage(),
		})
	}
	return list
}

// writeFarmFailures writes a table of the farm's failures, if there are any.
func (t *Tally) writeFarmFailures(w io.Writer) error {
	if len(t.FarmFailures) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nLast failures of the farm:")
	table := humanize.NewTable("ERROR", ">COUNT", "ON", "AT", "MESSAGE").Errors("ERROR").Times("AT").Whole("MESSAGE")
	for _, f := range t.FarmFailures {
		table.Row(f.Error, strconv.Itoa(f.Count), f.Agent, f.At, f.Message)
	}
	return table.Write(w)
}

// WriteFailures writes the farm's failures and, for each task without a correct candidate, the error classes with
// counts and first messages and, once the job has ended, the number of untried tasks. Without any of them, it writes
// nothing.
func (t *Tally) WriteFailures(w io.Writer) error {
	if err := t.writeFarmFailures(w); err != nil {
		return err
	}
	untried := 0
	for i := range t.Tasks {
		task := &t.Tasks[i]
		if task.BestSeconds == 0 && task.Trials == 0 {
			untried++
		}
		if err := task.writeFailure(w); err != nil {
			return err
		}
	}
	if untried == 0 || !t.ended() {
		return nil
	}
	advice := "give more --trials or --time"
	if len(t.FarmFailures) > 0 {
		advice = "see the farm's failures"
	}
	if t.DeadLetters > 0 {
		advice = fmt.Sprintf("the farm gave up on batches: %d", t.DeadLetters)
	}
	_, err := fmt.Fprintf(w, "\n%d of %d tasks have no latency: none of their candidates was measured; %s\n", untried, len(t.Tasks), advice)
	return err
}

func (t *Task) writeFailure(w io.Writer) error {
	if !t.Failed() {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s has no latency: none of %d trials was right\n", t.Name, t.Trials); err != nil {
		return err
	}
	for _, class := range slices.Sorted(maps.Keys(t.Errors)) {
		if _, err := fmt.Fprintf(w, "  %s, %d times; the first said: %s\n", class, t.Errors[class], t.Messages[class]); err != nil {
			return err
		}
	}
	return nil
}

// Line is one trial in a log, a JSON object per line.
type Line struct {
	Task  string `json:"task"`
	Trial uint32 `json:"trial"`
	// LatencySeconds is null for a failed trial.
	LatencySeconds *float64 `json:"latency_s"`
	// Error is empty or an error class.
	Error string `json:"error"`
	// ElapsedSeconds is the time since the job's creation.
	ElapsedSeconds float64 `json:"elapsed_s"`
	BuildSeconds   float64 `json:"build_s"`
	RunSeconds     float64 `json:"run_s"`
	// BestSeconds is the task's best latency after this trial, or null.
	BestSeconds *float64 `json:"best_s"`
	// PredictedSeconds is the search's prediction; omitted if unknown.
	PredictedSeconds float32 `json:"predicted_s,omitempty"`
}

// Log writes a line for each trial of a job.
type Log struct {
	w     io.Writer
	tally *Tally
}

// NewLog returns a log of a tally's job. Each line is a single Write to w.
func NewLog(w io.Writer, tally *Tally) *Log { return &Log{w: w, tally: tally} }

// Add writes the line of an event that is a trial.
func (l *Log) Add(event *tilthv1.JobEvent) error {
	trial := event.GetTrial()
	if trial == nil || int(trial.GetTaskIndex()) >= len(l.tally.Tasks) {
		return nil
	}
	m := trial.GetMeasurement()
	line := Line{
		Task:           l.tally.Tasks[trial.GetTaskIndex()].Name,
		Trial:          m.GetCandidate().GetTrial(),
		Error:          wire.ErrorClass(m.GetError()),
		ElapsedSeconds: event.GetAt().AsTime().Sub(l.tally.Started).Round(time.Microsecond).Seconds(),
		BuildSeconds:   m.GetBuildSeconds(),
		RunSeconds:     m.GetRunSeconds(),
		BestSeconds:    Positive(trial.GetBestSeconds()),

		PredictedSeconds: trial.GetPredictedSeconds(),
	}
	if line.Error == "" {
		line.LatencySeconds = Positive(m.GetLatencySeconds())
	}
	// The encoder writes the object and a newline in one Write. HTML escaping is off because task names
	// contain arrows.
	e := json.NewEncoder(l.w)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		return fmt.Errorf("log trial %d of %s: %w", line.Trial, line.Task, err)
	}
	return nil
}

// Positive returns a number that is known if it is positive, or nil.
func Positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
}
