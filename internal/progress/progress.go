// Package progress shows a person how a job comes along: live on a terminal, as sparse lines elsewhere.
package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/trials"
)

// Display shows a job. Update and Close are called from one goroutine; Write, for other messages, from any.
type Display interface {
	// Update shows the tally, which the caller may change afterwards.
	Update(t *trials.Tally)
	// Write shows a message apart from the display.
	Write(p []byte) (int, error)
	// Close leaves the last state standing, and waits until it is shown.
	Close()
}

// Budget is what a job may spend; zero values are no limit.
type Budget struct {
	Trials int
	Time   time.Duration
}

// spent is the share of the budget that is used up, between 0 and 1.
func (b Budget) spent(trials int, elapsed time.Duration) float64 {
	share := 0.0
	if b.Trials > 0 {
		share = float64(trials) / float64(b.Trials)
	}
	if b.Time > 0 {
		share = max(share, elapsed.Seconds()/b.Time.Seconds())
	}
	return min(share, 1)
}

// of shows a count against its limit.
func of(n string, limit string, limited bool) string {
	if limited {
		return n + "/" + limit
	}
	return n
}

// total is the whole job in one line.
func (b Budget) total(s *snapshot, elapsed time.Duration) string {
	parts := []string{
		of("trials "+fmt.Sprint(s.trials), fmt.Sprint(b.Trials), b.Trials > 0),
		of(show.Clock(elapsed), show.Clock(b.Time), b.Time > 0),
	}
	if s.best > 0 {
		latency := "model " + show.Seconds(s.best)
		if s.untuned > 0 {
			latency += fmt.Sprintf(" (untuned %s, %s)", show.Seconds(s.untuned), show.Ratio(s.untuned, s.best))
		}
		parts = append(parts, latency)
	}
	if s.errors != show.Missing {
		parts = append(parts, "errors: "+s.errors)
	}
	if s.deadLetters > 0 {
		parts = append(parts, fmt.Sprintf("given up: %d batches", s.deadLetters))
	}
	return strings.Join(parts, "  ")
}

// snapshot is what a display keeps of a tally.
type snapshot struct {
	state         string
	trials        int
	best, untuned float64
	errors        string
	deadLetters   int
	started       time.Time
	tasks         []string
}

func take(t *trials.Tally) *snapshot {
	return &snapshot{
		state: show.JobState(t.State), trials: t.Trials(), best: t.BestSeconds(), untuned: t.UntunedSeconds(),
		errors: show.Counts(t.Errors()), deadLetters: t.DeadLetters, started: t.Started, tasks: taskLines(t),
	}
}

// taskLines has one aligned line for each task.
func taskLines(t *trials.Tally) []string {
	table := show.NewTable("TASK", ">", ">TRIALS", ">UNTUNED", ">BEST", ">SPEED-UP", ">GFLOP/s", "ERRORS")
	for i := range t.Tasks {
		task := &t.Tasks[i]
		table.Row(clip(task.Name, 48), fmt.Sprintf("%gx", task.Weight), fmt.Sprint(task.Trials), show.Seconds(task.UntunedSeconds),
			show.Seconds(task.BestSeconds), show.Ratio(task.UntunedSeconds, task.BestSeconds),
			show.GFLOPS(task.Flop, task.BestSeconds), show.Counts(task.Errors))
	}
	var text strings.Builder
	_ = table.Write(&text)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// clip cuts text to a width in runes.
func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}
