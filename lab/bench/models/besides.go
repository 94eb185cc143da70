package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// besides writes tables that compare packages of one kind with ONNX Runtime and packages of another kind. All three
// took turns.
func besides(title, other, own string) func(out *strings.Builder, machine string, rows []result) {
	return func(out *strings.Builder, machine string, rows []result) {
		fmt.Fprintf(out, "\n### %s on %s\n", title, machine)
		for _, threads := range []int{1, 2} {
			besidesOf(out, sorted(rows), threads, other, own)
		}
	}
}

// besidesOf writes the table for a number of threads, with geometric means.
func besidesOf(out *strings.Builder, rows []result, threads int, other, own string) {
	before := map[string]float64{}
	for _, r := range rows {
		if r.Threads == threads && r.Schedules == other {
			before[r.Model+r.Version] = r.Seconds
		}
	}
	var peers, others []float64
	table := bench.NewTable(fmt.Sprintf("model | >%s, ms | >ONNX Runtime | >× (quartiles) | >× with oneDNN | >%s, ms | >× | >weights | >error | >memory | >theirs | tree", own, other))
	for _, r := range rows {
		if r.Threads != threads || r.Schedules != own {
			continue
		}
		peers = append(peers, r.Ratio)
		times, gain := humanize.Missing, humanize.Missing
		if seconds, known := before[r.Model+r.Version]; known {
			others = append(others, seconds/r.Seconds)
			times, gain = fmt.Sprintf("%.4g", seconds*1e3), bench.Times(seconds/r.Seconds)
		}
		table.Rowf("%s | %s | %s | %s | %s | %s | %s | %s", r.Model, r.times(), bench.Known(r.OneDNNRatio, bench.Times), times, gain,
			humanize.Bytes(r.WeightBytes), r.errorAndMemory(), r.Version)
	}
	table.Write(out, bench.Threads(threads))
	if len(peers) > 0 {
		fmt.Fprintf(out, "\nGeometric means: %.2f × ONNX Runtime, the least %.2f", bench.GeometricMean(peers), slices.Min(peers))
		if len(others) > 0 {
			fmt.Fprintf(out, "; %.2f × %s", bench.GeometricMean(others), other)
		}
		out.WriteString(".\n")
	}
}
