// This file displays the progress of a job: live on a terminal, or as occasional lines elsewhere. It depends on
// tallies of trials, but not on a tracker.

package display

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Display shows a job. Update and Close must be called from one goroutine; Write may be called from any.
type Display interface {
	// Update shows the tally, which the caller may change afterwards.
	Update(t *progress.Tally)
	// Write shows a message apart from the display.
	Write(p []byte) (int, error)
	// Close leaves the final state visible and waits until it is shown.
	Close()
}

// Quiet shows no progress, but passes on messages.
type Quiet struct{ io.Writer }

// Update implements Display.
func (Quiet) Update(*progress.Tally) {}

// Close implements Display.
func (Quiet) Close() {}

// Sparse writes an occasional line, for logs and pipes.
type Sparse struct {
	w      io.Writer
	budget Budget
	every  time.Duration
	shown  bool
	last   time.Duration // job time of the last line
	at     int           // trials at the last line
	waits  tilthv1.WaitReason
	final  func() (line string, trials int)
}

// NewSparse returns a display that writes at most one line per interval of job time, and one at the end.
func NewSparse(w io.Writer, budget Budget, every time.Duration) *Sparse {
	return &Sparse{w: w, budget: budget, every: every}
}

// Update implements Display.
func (s *Sparse) Update(t *progress.Tally) {
	if wait := t.Status.GetWait(); wait.GetReason() != s.waits {
		if s.waits = wait.GetReason(); wait != nil && wait.GetReason() != tilthv1.WaitReason_WAIT_REASON_TURN {
			fmt.Fprintln(s.w, "waiting: "+wait.GetMessage())
		}
	}
	elapsed, n := t.Elapsed(), t.Trials()
	line := func() (string, int) { return strings.Join(take(t).parts(s.budget, elapsed), "  "), n }
	s.final = line
	if n == 0 || s.shown && elapsed-s.last < s.every {
		return
	}
	s.shown, s.last, s.at = true, elapsed, n
	text, _ := line()
	fmt.Fprintln(s.w, text)
}

// Write implements Display.
func (s *Sparse) Write(p []byte) (int, error) { return s.w.Write(p) }

// Close implements Display.
func (s *Sparse) Close() {
	if s.final == nil {
		return
	}
	if text, n := s.final(); n != s.at {
		fmt.Fprintln(s.w, text)
	}
}

// Budget is the budget of a job; zero values mean no limit.
type Budget struct {
	Trials int
	Time   time.Duration
}

// spent returns the used share of the budget, between 0 and 1.
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

// left estimates how long the budget lasts at the current pace. ok is false if it is too early to tell.
func (b Budget) left(trials int, elapsed time.Duration) (left time.Duration, ok bool) {
	if b.Time > 0 {
		left, ok = max(b.Time-elapsed, 0), true
	}
	if b.Trials > 0 && trials > 0 {
		open := time.Duration(float64(elapsed) / float64(trials) * float64(max(b.Trials-trials, 0)))
		if !ok || open < left {
			left, ok = open, true
		}
	}
	return left, ok
}

const barWidth = 10

// bar draws the used share of the budget.
func (b Budget) bar(trials int, elapsed time.Duration) string {
	full := int(b.spent(trials, elapsed) * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}

// snapshot is the part of a tally that a display keeps.
type snapshot struct {
	trials, known        int
	best, untuned, limit float64
	errors               string
	deadLetters          int
	paused               bool
	waits                string
	status               *tilthv1.JobStatus
	statusAt             time.Duration // since started
	started              time.Time
	shares               func(elapsed time.Duration) progress.Shares
	// tasks is sorted: tasks without a correct candidate, then by share of the total latency, then untried tasks.
	tasks []task
}

// task is a row of a display.
type task struct {
	name string
	// total and limit are the current and the minimum latency of all executions, and best and untuned
	// latencies of one, in seconds; 0 if unknown.
	total, limit, best, untuned float64
	flop                        float64
	ofLimit                     string
	trials, failed              int
	errors                      string
}

func take(t *progress.Tally) *snapshot {
	s := &snapshot{
		trials: t.Trials(), known: t.KnownTrials(), best: t.BestSeconds(), untuned: t.UntunedSeconds(), limit: t.LimitSeconds(),
		errors: humanize.Counts(t.Errors()), deadLetters: t.DeadLetters, paused: t.State == tilthv1.JobState_JOB_STATE_PAUSED,
		waits: t.Status.GetWait().GetMessage(), status: t.Status, statusAt: t.StatusAt.Sub(t.Started), started: t.Started, shares: t.Spent().Shares,
	}
	for i := range t.Tasks {
		s.tasks = append(s.tasks, newTask(&t.Tasks[i]))
	}
	slices.SortStableFunc(s.tasks, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), -cmp.Compare(a.total, b.total))
	})
	return s
}

func newTask(t *progress.Task) task {
	limit, _ := t.Limit()
	failed := 0
	for _, n := range t.Errors {
		failed += n
	}
	return task{
		name: t.Name, total: t.Weight * t.BestSeconds, limit: t.Weight * limit, best: t.BestSeconds, untuned: t.UntunedSeconds,
		flop: t.Flop, ofLimit: t.OfLimit(), trials: t.Trials, failed: failed, errors: humanize.Counts(t.Errors),
	}
}

// rank orders tasks by the attention that they need.
func (t task) rank() int {
	switch {
	case t.best > 0:
		return 1
	case t.trials > 0:
		return 0
	}
	return 2
}

// used returns how much of the time budget was used at a time since the job's start.
func (s *snapshot) used(elapsed time.Duration) time.Duration {
	if s.status.GetTimeSpent() == nil {
		return elapsed
	}
	used := s.status.GetTimeSpent().AsDuration()
	if s.status.GetTimeRuns() {
		used += max(elapsed-s.statusAt, 0)
	}
	return used
}

// parts describes the whole job in short phrases.
func (s *snapshot) parts(b Budget, elapsed time.Duration) []string {
	if b.Time > 0 {
		elapsed = s.used(elapsed)
	}
	parts := []string{
		of("trials "+fmt.Sprint(s.trials), fmt.Sprint(b.Trials), b.Trials > 0),
		of(humanize.Clock(elapsed), humanize.Clock(b.Time), b.Time > 0),
	}
	if left, ok := b.left(s.trials, elapsed); ok {
		parts = append(parts, "left "+humanize.Clock(left))
	}
	if latency := s.latency(); latency != "" {
		parts = append(parts, latency)
	}
	if s.paused {
		parts = append(parts, "paused")
	}
	if s.waits != "" {
		parts = append(parts, "waiting: "+s.waits)
	}
	if s.known > 0 {
		parts = append(parts, fmt.Sprintf("resumed: %d trials known", s.known))
	}
	if s.errors != humanize.Missing {
		parts = append(parts, "errors: "+s.errors)
	}
	if s.deadLetters > 0 {
		parts = append(parts, fmt.Sprintf("given up: %d batches", s.deadLetters))
	}
	return parts
}

// latency describes the latency of all tasks, with the untuned and the minimum one. It skips tasks without a latency.
func (s *snapshot) latency() string {
	text := "model " + humanize.Seconds(s.best)
	switch {
	case s.best == 0:
		return s.partLatency()
	case s.untuned > 0 && s.limit > 0:
		return text + fmt.Sprintf(" (untuned %s, %s; limit %s)", humanize.Seconds(s.untuned), humanize.Ratio(s.untuned, s.best), humanize.Seconds(s.limit))
	case s.untuned > 0:
		return text + fmt.Sprintf(" (untuned %s, %s)", humanize.Seconds(s.untuned), humanize.Ratio(s.untuned, s.best))
	case s.limit > 0:
		return text + fmt.Sprintf(" (limit %s)", humanize.Seconds(s.limit))
	}
	return text
}

func (s *snapshot) partLatency() string {
	known, total := 0, 0.0
	for _, t := range s.tasks {
		if t.total > 0 {
			known, total = known+1, total+t.total
		}
	}
	if known == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d tasks %s", known, len(s.tasks), humanize.Seconds(total))
}

// of formats a count and its limit.
func of(n string, limit string, limited bool) string {
	if limited {
		return n + "/" + limit
	}
	return n
}
