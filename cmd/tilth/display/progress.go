// This file displays the progress of a job: live on a terminal, or as occasional lines elsewhere. It depends on
// tallies of trials, but not on a tracker.

package display

import (
	"fmt"
	"io"
	"strings"
	"time"

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
