package profile

import (
	"fmt"
	"io"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// Write writes the profile as a table, one line per task, followed by the totals.
func (p *Profile) Write(w io.Writer) error {
	if p.Device != nil {
		return p.writeDevice(w)
	}
	table := humanize.NewTable(">TIME", ">SHARE", ">CALLS", ">"+p.unit("G"), ">PEAK", ">LIMIT", "BOUND BY", "SCHEDULE", "ALGORITHM", "TASK", "NODES")
	for _, c := range p.byTask() {
		table.Row(humanize.Seconds(c.Seconds), percent(c.Share), fmt.Sprint(c.calls), humanize.GFLOPS(c.Flop+c.IntegerOps, c.Seconds), c.peakShare(), humanize.Seconds(c.LimitSeconds),
			c.bound(), c.Origin, c.algorithm(), c.Task, c.nodes())
	}
	if err := table.Write(w); err != nil {
		return err
	}
	t := p.Total
	_, err := fmt.Fprintf(w, "\ntotal %s in %d calls%s: %s %s, %s; at the machine's %s %s\n"+
		"machine, on %d of its threads: %s GFLOP/s of fused multiply-adds%s, %s GB/s from memory\n",
		humanize.Seconds(t.Seconds), len(p.Calls), p.skipped(), humanize.GFLOPS(t.Flop+t.IntegerOps, t.Seconds), p.unit("G"), t.ofThePeak(), t.limits(), humanize.Seconds(t.LimitSeconds),
		p.Threads, humanize.GFLOPS(p.Peak.FlopsPerSecond, 1), p.integers(), humanize.GFLOPS(p.Peak.BytesPerSecond, 1))
	return err
}

// skipped describes the number of skipped calls.
func (p *Profile) skipped() string {
	if p.Skipped == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more were not needed)", p.Skipped)
}

// unit returns the unit of the operation rate with a prefix.
func (p *Profile) unit(prefix string) string {
	if p.Total.IntegerOps > 0 {
		return prefix + "OP/s"
	}
	return prefix + "FLOP/s"
}

// integers describes the peak of integer sums, if the model has any.
func (p *Profile) integers() string {
	if p.Total.IntegerOps == 0 || p.Peak.IntegersPerSecond == 0 {
		return ""
	}
	return fmt.Sprintf(", %s GOP/s of those of integers", humanize.GFLOPS(p.Peak.IntegersPerSecond, 1))
}

// algorithm returns the algorithms of a call; empty for direct sums.
func (c *Call) algorithm() string {
	if len(c.Algorithms) == 0 {
		return humanize.Missing
	}
	return strings.Join(c.Algorithms, " ")
}

// bound describes the limit of a call, with its rate if it is memory bound.
func (w *Work) bound() string {
	switch w.BoundBy {
	case ByMemory:
		return fmt.Sprintf("memory, %s GB/s", humanize.GFLOPS(float64(w.Bytes), float64(w.Bytes)/w.BytesPerSecond))
	case "":
		if w.PeakUnknown {
			return unknown
		}
		return humanize.Missing
	}
	return w.BoundBy
}

// unknown is printed where a rate could not be measured.
const unknown = "unknown"

// peakShare returns the share of the peak; empty if there is no arithmetic.
func (w *Work) peakShare() string {
	switch {
	case w.PeakUnknown:
		return unknown
	case w.PeakShare == 0:
		return humanize.Missing
	}
	return percent(w.PeakShare)
}

// ofThePeak describes the share of a total.
func (w *Work) ofThePeak() string {
	if w.PeakUnknown {
		return "the peak is " + unknown
	}
	return w.peakShare() + " of the peak"
}

// limits describes the composition of a total's limit.
func (w *Work) limits() string {
	if w.PeakUnknown {
		return "limits that are known"
	}
	return "limits"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
