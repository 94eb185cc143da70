package main

import (
	"fmt"
	"io"

	"github.com/tilth-dev/tilth/internal/show"
)

// writeTable writes what was measured as Markdown.
func writeTable(w io.Writer, b *bench, m machine, tasks []*task) error {
	fmt.Fprintf(w, "%s, %d threads: %.0f GFLOP/s, %.1f GB/s measured; %d trials each.\n\n", b.target.CPU, b.target.Threads,
		m.flopPerSecond/1e9, m.bytesPerSecond/1e9, b.trials)
	fmt.Fprintln(w, "| workload | GFLOP | MB | bound by | limit | default | GFLOP/s | % of peak | % of limit | tuned | GFLOP/s | % of peak | % of limit |")
	fmt.Fprintln(w, "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	var limit, untuned, best float64
	for _, t := range tasks {
		least, by := m.limit(t.workload)
		calls := float64(max(t.count, 1))
		limit, untuned, best = limit+calls*least, untuned+calls*t.untuned, best+calls*t.best
		fmt.Fprintf(w, "| %s | %.4g | %.3g | %s | %s | %s | %s |\n", t.title(), t.flop/1e9, float64(t.bytes())/1e6, by, show.Seconds(least),
			columns(t, m, least, t.untuned), columns(t, m, least, t.best))
		if b.points {
			fmt.Fprintf(w, "<!-- default %s\n     best    %s -->\n", t.space.Format(t.space.Default()), t.bestPoint)
		}
		for _, f := range t.failures {
			fmt.Fprintf(w, "<!-- failed: %s -->\n", f)
		}
	}
	_, err := fmt.Fprintf(w, "\nAll calls together: limit %s, default %s, tuned %s.\n", show.Seconds(limit), show.Seconds(untuned), show.Seconds(best))
	return err
}

func (t *task) title() string {
	title := t.name
	if t.shape != "" {
		title += " (" + t.shape + ")"
	}
	if t.count > 1 {
		title += fmt.Sprintf(" %dx", t.count)
	}
	return title
}

// columns are a latency and what it says.
func columns(t *task, m machine, least, seconds float64) string {
	percent := func(part, whole float64) string {
		if whole <= 0 {
			return show.Missing
		}
		return fmt.Sprintf("%.0f", 100*part/whole)
	}
	return fmt.Sprintf("%s | %s | %s | %s", show.Seconds(seconds), show.GFLOPS(t.flop, seconds), percent(t.flop/m.flopPerSecond, seconds), percent(least, seconds))
}
