package display

import (
	"fmt"
	"io"
	"strings"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/trials"
)

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
func (s *Sparse) Update(t *trials.Tally) {
	if wait := t.Status.GetWait(); wait.GetReason() != s.waits {
		if s.waits = wait.GetReason(); wait != nil && wait.GetReason() != tilthv1.WaitReason_WAIT_REASON_TURN {
			fmt.Fprintln(s.w, "waits: "+wait.GetMessage())
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
