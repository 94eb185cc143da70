package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
		BestSeconds:    positive(trial.GetBestSeconds()),

		PredictedSeconds: trial.GetPredictedSeconds(),
	}
	if line.Error == "" {
		line.LatencySeconds = positive(m.GetLatencySeconds())
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

func positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
}
