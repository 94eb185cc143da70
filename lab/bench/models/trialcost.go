package models

import (
	"fmt"
	"io"
	"os"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/lab/bench"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// costWindow is the number of trials in one sample of the cost. Trials are reported in bursts, when batches end.
const costWindow = 48

// trialCost reads a log of trials and writes the cost of a trial by phase.
func trialCost(path string, w io.Writer) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	lines, err := bench.Read[progress.Line](path)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("%s: it has no trials", path)
	}
	var costs []float64
	for i := costWindow; i < len(lines); i += costWindow {
		costs = append(costs, (lines[i].ElapsedSeconds-lines[i-costWindow].ElapsedSeconds)/costWindow)
	}
	var build, run float64
	failed := 0
	for _, l := range lines {
		build += l.BuildSeconds
		run += l.RunSeconds
		if l.Error != "" {
			failed++
		}
	}
	total := lines[len(lines)-1].ElapsedSeconds
	fmt.Fprintf(w, "\n%d trials (%d failed) in %s: %s a trial, median %s over windows of %d\n", len(lines), failed,
		humanize.Seconds(total), humanize.Seconds(total/float64(len(lines))), humanize.Seconds(stats.Of(costs).Median), costWindow)
	// Building and measuring do not overlap on one host. The remainder is search and waiting.
	fmt.Fprintf(w, "build %.0f %%, measure %.0f %%, search and the rest %.0f %%\n", 100*build/total, 100*run/total,
		100*(total-build-run)/total)
	return nil
}
