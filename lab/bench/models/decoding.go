package models

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// decodingColumns is the header of the table of decoders.
const decodingColumns = `| model | weights | ms a token | ONNX Runtime | × (quartiles) | moved | GB/s | of the memory's rate | error | memory | theirs | tree |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
`

// writeDecoding writes a machine's results of decoders as Markdown tables, one for each number of threads.
func writeDecoding(out *strings.Builder, machine string, rows []result) {
	fmt.Fprintf(out, "\n### Decoding on %s\n", machine)
	for _, threads := range []int{1, 2} {
		begun := false
		for _, r := range sorted(rows) {
			if r.Threads != threads {
				continue
			}
			if !begun {
				begun = true
				fmt.Fprintf(out, "\n%s\n\n%s", plural(threads), decodingColumns)
			}
			rate := float64(r.Bytes) / r.Seconds
			fmt.Fprintf(out, "| %s | %s | %.4g | %.4g | **%.2f** (%.2f–%.2f) | %s | %.3g | %.0f %% | %s | %s | %s | %s |\n",
				r.Model, r.Schedules, r.Seconds*1e3, r.PeerSeconds*1e3, r.Ratio, r.RatioLow, r.RatioHigh, show.Bytes(r.Bytes), rate/1e9,
				100*rate/r.Peak.BytesPerSecond, largestError(r.RelativeError), show.Bytes(r.Memory), show.Bytes(r.PeerMemory), r.Version)
		}
	}
}
