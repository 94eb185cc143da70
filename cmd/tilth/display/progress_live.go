package display

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner/progress"
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
func NewLive(terminal Terminal, t *progress.Tally, budget Budget, now func() time.Time) *Live {
	l := &Live{terminal: terminal, budget: budget, now: now, stop: make(chan struct{}), shown: take(t)}
	l.draw()
	l.stopped.Go(l.refresh)
	return l
}

func (l *Live) refresh() {
	tick := time.Tick(refreshEvery)
	for {
		select {
		case <-tick:
			l.draw()
		case <-l.stop:
			return
		}
	}
}

// Update implements Display.
func (l *Live) Update(t *progress.Tally) {
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
		out.WriteString(humanize.Printable(line, "") + "\x1b[K\n")
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
		if n := humanize.Columns(line); width > 0 && n > width {
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
	text := strings.TrimSuffix(humanize.Printable(string(p), "\n\t"), "\n")
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
	width = cmp.Or(width, usualWidth)
	l.replace(footer(l.shown, l.budget, l.elapsed(), width), width)
}

// Terminal sizes: defaults for unknown ones, and the smallest plausible ones.
const (
	usualWidth, usualHeight = 80, 24
	minWidth                = 20
)

// frame renders the job for a terminal of a size (0 if unknown): its tasks, the largest of them if not all
// fit, and the totals.
func frame(s *snapshot, b Budget, elapsed time.Duration, width, height int) []string {
	width = cmp.Or(width, usualWidth)
	height = cmp.Or(height, usualHeight)
	width = max(width, minWidth)
	foot := footer(s, b, elapsed, width)
	lines := append(head(s, width, height-len(foot)-1), foot...) // the cursor needs its own line
	lines = lines[max(0, len(lines)-max(height-1, 1)):]
	for i := range lines {
		lines[i] = clip(lines[i], width)
	}
	return lines
}

// footer renders the totals of the job.
func footer(s *snapshot, b Budget, elapsed time.Duration, width int) []string {
	parts := s.parts(b, elapsed)
	parts[0] = b.bar(s.trials, s.used(elapsed)) + " " + parts[0]
	return pack(append(parts, "time: "+s.shares(elapsed).String()), width)
}

// head renders as many tasks as fit under their headings, and the rest in one line.
func head(s *snapshot, width, space int) []string {
	rows := space - 1
	if len(s.tasks) == 0 || rows < 1 {
		return nil
	}
	whole := 0.0
	for _, t := range s.tasks {
		whole += t.total
	}
	if len(s.tasks) <= rows {
		return table(s.tasks, whole, width)
	}
	shown := append([]task{}, s.tasks[:rows-1]...)
	return table(append(shown, rest(s.tasks[rows-1:])), whole, width)
}

// rest summarises several tasks.
func rest(tasks []task) task {
	sum := task{name: fmt.Sprintf("%d more", len(tasks)), errors: humanize.Missing}
	known := true
	for _, t := range tasks {
		sum.total += t.total
		sum.limit += t.limit
		sum.trials += t.trials
		sum.failed += t.failed
		known = known && t.total > 0 && t.limit > 0
	}
	sum.ofLimit = humanize.Missing
	if known {
		sum.ofLimit = humanize.Share(sum.limit, sum.total)
	}
	if sum.failed > 0 {
		sum.errors = fmt.Sprint(sum.failed)
	}
	return sum
}

// progressGap is the space between parts of the totals.
const progressGap = 2

// table renders tasks as lines of at most width columns, under headings. whole is the latency of the model.
func table(tasks []task, whole float64, width int) []string {
	out := humanize.NewTable("TASK", ">SHARE", ">UNTUNED", ">BEST", ">SPEED-UP", ">GFLOP/s", "OF LIMIT", ">TRIALS", "ERRORS").
		Optional("ERRORS", "UNTUNED", "SPEED-UP", "SHARE", "GFLOP/s", "OF LIMIT")
	for _, t := range tasks {
		out.Row(t.name, humanize.Percent(t.total, whole), humanize.Seconds(t.untuned), humanize.Seconds(t.best), humanize.Ratio(t.untuned, t.best),
			humanize.GFLOPS(t.flop, t.best), t.ofLimit, fmt.Sprint(t.trials), t.errors)
	}
	var text strings.Builder
	_ = out.Write(&humanize.Screen{Writer: &text, Width: width}) // a builder does not fail
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// clip shortens text to a width in columns.
func clip(text string, width int) string {
	if humanize.Columns(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && humanize.Columns(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// pack distributes parts over as few lines as possible, two spaces apart, with at most width columns unless a
// single part is longer.
func pack(parts []string, width int) (lines []string) {
	for _, part := range parts {
		last := len(lines) - 1
		if last >= 0 && humanize.Columns(lines[last])+progressGap+humanize.Columns(part) <= width {
			lines[last] += "  " + part
		} else {
			lines = append(lines, part)
		}
	}
	return lines
}
