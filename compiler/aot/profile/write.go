package profile

import (
	"fmt"
	"io"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// Write writes the profile as a table for people, a line a task, with the totals behind it.
func (p *Profile) Write(w io.Writer) error {
	if p.Device != nil {
		return p.writeDevice(w)
	}
	table := show.NewTable(">TIME", ">SHARE", ">CALLS", ">"+p.unit(), ">PEAK", ">LIMIT", "BOUND BY", "SCHEDULE", "ALGORITHM", "TASK", "NODES")
	for _, c := range p.byTask() {
		table.Row(show.Seconds(c.Seconds), percent(c.Share), fmt.Sprint(c.calls), show.GFLOPS(c.Flop+c.IntegerOps, c.Seconds), c.peakShare(), show.Seconds(c.LimitSeconds),
			c.bound(), c.Origin, c.algorithm(), c.Task, c.nodes())
	}
	if err := table.Write(w); err != nil {
		return err
	}
	t := p.Total
	_, err := fmt.Fprintf(w, "\ntotal %s in %d calls%s: %s %s, %s; at the machine's %s %s\n"+
		"machine, on %d of its threads: %s GFLOP/s of fused multiply-adds%s, %s GB/s from memory\n",
		show.Seconds(t.Seconds), len(p.Calls), p.skipped(), show.GFLOPS(t.Flop+t.IntegerOps, t.Seconds), p.unit(), t.ofThePeak(), t.limits(), show.Seconds(t.LimitSeconds),
		p.Threads, show.GFLOPS(p.Peak.FlopsPerSecond, 1), p.integers(), show.GFLOPS(p.Peak.BytesPerSecond, 1))
	return err
}

// skipped says how many calls were not needed.
func (p *Profile) skipped() string {
	if p.Skipped == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more were not needed)", p.Skipped)
}

// unit is that of the rate of operations.
func (p *Profile) unit() string {
	if p.Total.IntegerOps > 0 {
		return "GOP/s"
	}
	return "GFLOP/s"
}

// integers is the peak of the model's sums of integers, if it has any.
func (p *Profile) integers() string {
	if p.Total.IntegerOps == 0 || p.Peak.IntegersPerSecond == 0 {
		return ""
	}
	return fmt.Sprintf(", %s GOP/s of those of integers", show.GFLOPS(p.Peak.IntegersPerSecond, 1))
}

// algorithm is missing for sums computed term by term.
func (c *Call) algorithm() string {
	if len(c.Algorithms) == 0 {
		return show.Missing
	}
	return strings.Join(c.Algorithms, " ")
}

// bound says what limits a call, with the rate of what memory limits.
func (w *Work) bound() string {
	switch w.BoundBy {
	case ByMemory:
		return fmt.Sprintf("memory, %s GB/s", show.GFLOPS(float64(w.Bytes), float64(w.Bytes)/w.BytesPerSecond))
	case "":
		if w.PeakUnknown {
			return unknown
		}
		return show.Missing
	}
	return w.BoundBy
}

// unknown stands for what is compared with a rate that could not be measured.
const unknown = "unknown"

// peakShare is missing where there is no arithmetic.
func (w *Work) peakShare() string {
	switch {
	case w.PeakUnknown:
		return unknown
	case w.PeakShare == 0:
		return show.Missing
	}
	return percent(w.PeakShare)
}

// ofThePeak is the share of a total.
func (w *Work) ofThePeak() string {
	if w.PeakUnknown {
		return "the peak is " + unknown
	}
	return w.peakShare() + " of the peak"
}

// limits says which of them the limit of a total is made of.
func (w *Work) limits() string {
	if w.PeakUnknown {
		return "limits that are known"
	}
	return "limits"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
