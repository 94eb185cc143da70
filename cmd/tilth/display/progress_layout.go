package display

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

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
