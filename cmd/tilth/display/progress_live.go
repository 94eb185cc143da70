package display

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/tuner/trials"
)

// refreshEvery is the redraw interval.
const refreshEvery = 200 * time.Millisecond

// Terminal is the terminal of a Live display.
type Terminal struct {
	io.Writer
	// Size returns the current size; 0 if unknown.
	Size func() (width, height int)
}

// Live redraws the task table and the totals in place.
type Live struct {
	terminal Terminal
	budget   Budget
	now      func() time.Time
	stop     chan struct{}
	stopped  sync.WaitGroup

	mu    sync.Mutex
	shown *snapshot
	drawn []string // the lines above the cursor
}

// NewLive returns a display on a terminal. now is the clock of the job's elapsed time.
func NewLive(terminal Terminal, t *trials.Tally, budget Budget, now func() time.Time) *Live {
	l := &Live{terminal: terminal, budget: budget, now: now, stop: make(chan struct{}), shown: take(t)}
	l.draw()
	l.stopped.Go(l.refresh)
	return l
}

func (l *Live) refresh() {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.draw()
		case <-l.stop:
			return
		}
	}
}

// Update implements Display.
func (l *Live) Update(t *trials.Tally) {
	s := take(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = s
}

func (l *Live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	width, height := l.terminal.Size()
	l.replace(frame(l.shown, l.budget, l.elapsed(), width, height), width)
}

func (l *Live) elapsed() time.Duration { return max(l.now().Sub(l.shown.started), 0) }

// replace redraws the lines with a single write, to avoid flicker.
func (l *Live) replace(lines []string, width int) {
	var out strings.Builder
	out.WriteString(l.home(width))
	for _, line := range lines {
		out.WriteString(line + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	_, _ = io.WriteString(l.terminal, out.String())
	l.drawn = lines
}

// home moves the cursor to the start of the drawing. In a terminal that became narrower, a line may occupy
// several rows.
func (l *Live) home(width int) string {
	rows := 0
	for _, line := range l.drawn {
		rows++
		if n := show.Columns(line); width > 0 && n > width {
			rows += (n - 1) / width
		}
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}

// Write implements Display. The message appears above the drawing.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	width, _ := l.terminal.Size()
	below := l.drawn
	text := strings.TrimSuffix(string(p), "\n")
	if _, err := io.WriteString(l.terminal, l.home(width)+"\x1b[J"+text+"\n"); err != nil {
		return 0, err
	}
	l.drawn = nil
	l.replace(below, width)
	return len(p), nil
}

// Close implements Display. It removes the tasks, which the final table repeats, and keeps the totals.
func (l *Live) Close() {
	close(l.stop)
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	width, _ := l.terminal.Size()
	if width == 0 {
		width = usualWidth
	}
	l.replace(footer(l.shown, l.budget, l.elapsed(), width), width)
}
