package models

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// writeDecoding writes a machine's results of decoders as Markdown tables, one for each number of threads.
func writeDecoding(out *strings.Builder, machine string, rows []result) {
	fmt.Fprintf(out, "\n### Decoding on %s\n", machine)
	for _, threads := range []int{1, 2} {
		table := bench.NewTable("model | weights | >ms a token | >ONNX Runtime | >× (quartiles) | >moved | >GB/s | >of the memory's rate | >error | >memory | >theirs | tree")
		for _, r := range sorted(rows) {
			if r.Threads != threads {
				continue
			}
			rate := float64(r.Bytes) / r.Seconds
			table.Rowf("%s | %s | %s | %s | %.3g | %s | %s | %s", r.Model, r.Schedules, r.times(), humanize.Bytes(r.Bytes), rate/1e9,
				bench.Percent(rate/r.Peak.BytesPerSecond), r.errorAndMemory(), r.Version)
		}
		table.Write(out, bench.Threads(threads))
	}
}
