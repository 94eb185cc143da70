package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// besides writes tables of packages of one kind, beside ONNX Runtime and packages of another kind: all three took
// turns with one another.
func besides(title, other, own string) func(out *strings.Builder, machine string, rows []result) {
	return func(out *strings.Builder, machine string, rows []result) {
		fmt.Fprintf(out, "\n### %s on %s\n", title, machine)
		for _, threads := range []int{1, 2} {
			besidesOf(out, sorted(rows), threads, other, own)
		}
	}
}

// besidesOf is the table for a number of threads, with geometric means.
func besidesOf(out *strings.Builder, rows []result, threads int, other, own string) {
	before, peers, others := map[string]float64{}, means{}, means{}
	for _, r := range rows {
		if r.Threads == threads && r.Schedules == other {
			before[r.Model+r.Version] = r.Seconds
		}
	}
	for _, r := range rows {
		if r.Threads != threads || r.Schedules != own {
			continue
		}
		if peers.count == 0 {
			fmt.Fprintf(out, "\n%s\n\n| model | %s, ms | ONNX Runtime | × (quartiles) | × with oneDNN | %s, ms | × | weights | error | memory | theirs | tree |\n"+
				"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n", plural(threads), own, other)
		}
		peers.add(r.Ratio)
		times, gain := show.Missing, show.Missing
		if seconds, known := before[r.Model+r.Version]; known {
			others.add(seconds / r.Seconds)
			times, gain = fmt.Sprintf("%.4g", seconds*1e3), fmt.Sprintf("%.2f", seconds/r.Seconds)
		}
		fmt.Fprintf(out, "| %s | %.4g | %.4g | **%.2f** (%.2f–%.2f) | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			r.Model, r.Seconds*1e3, r.PeerSeconds*1e3, r.Ratio, r.RatioLow, r.RatioHigh, withOneDNN(r.OneDNNRatio), times, gain,
			show.Bytes(r.WeightBytes), largestError(r.RelativeError), show.Bytes(r.Memory), show.Bytes(r.PeerMemory), r.Version)
	}
	if peers.count > 0 {
		fmt.Fprintf(out, "\nGeometric means: %s × ONNX Runtime, the least %.2f; %s × %s.\n", peers, peers.least, others, other)
	}
}

// means is the geometric mean of ratios, and their least.
type means struct {
	logs, least float64
	count       int
}

func (m *means) add(ratio float64) {
	if m.count == 0 || ratio < m.least {
		m.least = ratio
	}
	m.logs += math.Log(ratio)
	m.count++
}

func (m means) String() string {
	if m.count == 0 {
		return show.Missing
	}
	return fmt.Sprintf("%.2f", math.Exp(m.logs/float64(m.count)))
}
