package display

import (
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
)

// Terminal sizes: defaults for unknown ones, and the smallest plausible ones.
const (
	usualWidth, usualHeight = 80, 24
	minWidth                = 20
)

// frame renders the job for a terminal of a size (0 if unknown): its tasks, the largest of them if not all
// fit, and the totals.
func frame(s *snapshot, b Budget, elapsed time.Duration, width, height int) []string {
	if width == 0 {
		width = usualWidth
	}
	if height == 0 {
		height = usualHeight
	}
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
		return table(s.tasks, false, whole, width)
	}
	shown := append([]task{}, s.tasks[:rows-1]...)
	return table(append(shown, rest(s.tasks[rows-1:])), true, whole, width)
}

// rest summarises several tasks.
func rest(tasks []task) task {
	sum := task{name: fmt.Sprintf("%d more", len(tasks)), errors: show.Missing}
	known := true
	for _, t := range tasks {
		sum.total += t.total
		sum.limit += t.limit
		sum.trials += t.trials
		sum.failed += t.failed
		known = known && t.total > 0 && t.limit > 0
	}
	sum.ofLimit = show.Missing
	if known {
		sum.ofLimit = show.Share(sum.limit, sum.total)
	}
	if sum.failed > 0 {
		sum.errors = fmt.Sprint(sum.failed)
	}
	return sum
}
