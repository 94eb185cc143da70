package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// decodingName is the name of the file with results of decoders, and decodingPart the part of a document that has
// their table.
const decodingName, decodingPart = "decoding", "bench decoding"

// decoders are compared when none is named.
var decoders = []string{"gpt-small", "llama-small"}

// tokensBefore is how many tokens are before the one that a decoder is timed with.
const tokensBefore = 128

// decodingKinds are the forms in which a decoder's weights are kept.
func decodingKinds() []kind {
	shape := []string{"--untuned", "--shape", fmt.Sprintf("batch=1,sequence=1..32:1,%s=0..%d", pastExtent, tokensBefore)}
	return []kind{
		{schedules: "32 bits", arguments: shape},
		{schedules: "16 bits", arguments: append(slices.Clone(shape), "--numerics", "fast")},
		{schedules: "8 bits", arguments: append(slices.Clone(shape), "--numerics", "fast", "--weights", "int8")},
		{schedules: "4 bits", arguments: append(slices.Clone(shape), "--numerics", "fast", "--weights", "int4")},
	}
}

// runDecoding goes through decoders: one token behind others, in each form of their weights, beside ONNX Runtime's
// float32.
func runDecoding(ctx context.Context, args []string, w io.Writer) error {
	s := &suite{file: decodingName, kinds: decodingKinds(), write: []string{"--past", "--last"},
		extents: []string{"-shape", "sequence=1", "-shape", fmt.Sprintf("%s=%d", pastExtent, tokensBefore)}}
	names, err := s.parse("decoding", args)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = decoders
	}
	return s.run(ctx, names, w)
}

// decodingColumns are those of the table of decoders, and their alignment.
const decodingColumns = `| model | weights | ms a token | ONNX Runtime | × (quartiles) | moved | GB/s | of the memory's rate | error | memory | theirs | tree |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
`

// writeDecoding writes a machine's results of decoders as tables in Markdown, one for each number of threads.
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
