package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// refreshEvery is how often the picture is drawn anew.
const refreshEvery = 200 * time.Millisecond

// Terminal is where a Live display draws.
type Terminal struct {
	io.Writer
	// Size is its columns and lines at the moment; 0 for what is not known.
	Size func() (width, height int)
}

// Live redraws a table of the tasks and the job as a whole, in place.
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

// NewLive makes a display on a terminal. now is the clock that the job's elapsed time goes by.
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

// replace draws lines over those that stand there, with one write, so that nothing flickers.
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

// home moves the cursor to the beginning of what is drawn. In a terminal that became narrower a line takes several.
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

// Write implements Display: the message comes to stand above the picture.
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

// Close implements Display. The closing table will say more of the tasks, so their lines go; those of the whole job
// stay.
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
