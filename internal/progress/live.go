package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tilth-dev/tilth/internal/trials"
)

const (
	refreshEvery = 200 * time.Millisecond
	barWidth     = 10
)

// Live redraws a line a task and one for the whole job.
type Live struct {
	bars   *mpb.Progress
	budget Budget
	now    func() time.Time

	mu    sync.Mutex
	shown *snapshot
	ended time.Duration // job time at Close
	lines []*mpb.Bar
}

// NewLive makes a display on a terminal that is height lines high (0 = unknown). now is the clock that the job's elapsed
// time goes by.
func NewLive(w io.Writer, t *trials.Tally, budget Budget, height int, now func() time.Time) *Live {
	l := &Live{
		bars:   mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(refreshEvery)),
		budget: budget, now: now, shown: take(t),
	}
	count := len(l.shown.tasks)
	if height > 0 {
		// What does not fit would scroll away and be drawn anew below.
		count = min(count, max(height-3, 0))
	}
	for i := range count {
		l.add(func() string { return l.task(i) })
	}
	l.add(l.total)
	return l
}

// add draws a line at the bottom.
func (l *Live) add(text func() string) {
	draw := func(w io.Writer, stat decor.Statistics) error {
		_, err := io.WriteString(w, clip(text(), stat.AvailableWidth))
		return err
	}
	l.lines = append(l.lines, l.bars.MustAdd(0, mpb.BarFillerFunc(draw), mpb.BarFillerTrim()))
}

func (l *Live) task(i int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown.tasks[i]
}

func (l *Live) total() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	elapsed := l.ended
	if elapsed == 0 {
		elapsed = max(l.now().Sub(l.shown.started), 0)
	}
	full := int(l.budget.spent(l.shown.trials, elapsed) * barWidth)
	bar := strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full)
	return fmt.Sprintf("[%s] %s", bar, l.budget.total(l.shown, elapsed))
}

// Update implements Display.
func (l *Live) Update(t *trials.Tally) {
	s := take(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = s
}

// Write implements Display.
func (l *Live) Write(p []byte) (int, error) { return l.bars.Write(p) }

// Close implements Display; the tasks' lines go.
func (l *Live) Close() {
	l.mu.Lock()
	l.ended = max(l.now().Sub(l.shown.started), 1)
	l.mu.Unlock()
	// The closing table will say more of the tasks; the line of the whole job stays.
	last := len(l.lines) - 1
	for i, line := range l.lines {
		line.Abort(i != last)
	}
	l.bars.Wait()
}
