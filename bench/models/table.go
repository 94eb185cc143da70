package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/bench/document"
	"github.com/tilth-dev/tilth/internal/show"
)

// documentPart is the part of a document that the table replaces.
const documentPart = "bench table"

// runTable prints the table of all results.
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	dir := flags.String("dir", ".tools/bench", "folder with the results")
	kernels := flags.Int("kernels", 0, "so many kernels that take longest, for each result")
	into := flags.String("into", "", "document to write to, between its marks, instead of printing")
	below := flags.Float64("below", math.MaxFloat64, "kernels only of results below this ratio")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := openResults(*dir)
	if err != nil {
		return err
	}
	var out strings.Builder
	if err := r.write(&out); err != nil {
		return err
	}
	for _, row := range r.latest() {
		if row.Ratio < *below && *kernels > 0 && len(row.Kernels) > 0 {
			row.writeKernels(&out, *kernels)
		}
	}
	if *into != "" {
		return document.Splice(*into, documentPart, out.String())
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// write writes the results as a table in Markdown, those of the same number of threads and schedules together.
func (r *results) write(w io.Writer) error {
	var out strings.Builder
	rows := r.latest()
	for _, threads := range []int{1, 2} {
		for _, schedules := range []string{untunedSchedules, tunedSchedules} {
			writePart(&out, rows, threads, schedules)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// columns of the table, and their alignment.
const columns = `| model | ms | ONNX Runtime | × (quartiles) | GFLOP | limit by FLOP | weights | limit by bytes | error | memory | theirs | compiled in | tree |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
`

func writePart(out *strings.Builder, rows []result, threads int, schedules string) {
	begun := false
	for _, row := range rows {
		if row.Threads != threads || row.Schedules != schedules {
			continue
		}
		if !begun {
			begun = true
			fmt.Fprintf(out, "\n%s, %s\n\n%s", schedules, plural(threads), columns)
		}
		writeRow(out, row)
	}
}

func writeRow(out *strings.Builder, r result) {
	name := r.Model
	if r.Schedules == tunedSchedules && r.Compiled.Tuned < r.Compiled.Tasks {
		name += fmt.Sprintf(" (%d of %d tasks)", r.Compiled.Tuned, r.Compiled.Tasks)
	}
	fmt.Fprintf(out, "| %s | %.4g | %.4g | **%.2f** (%.2f–%.2f) | %.3g | %.3g ms | %s | %.3g ms | %s | %s | %s | %.3g s | %s |\n",
		name, r.Seconds*1e3, r.PeerSeconds*1e3, r.Ratio, r.RatioLow, r.RatioHigh,
		r.Flop/1e9, limit(r.Flop, r.Peak.FlopsPerSecond), show.Bytes(r.WeightBytes), limit(float64(r.WeightBytes), r.Peak.BytesPerSecond),
		largestError(r.RelativeError), show.Bytes(r.Memory), show.Bytes(r.PeerMemory), r.Compiled.Seconds, r.tree())
}

// tree is the version without the name of the program.
func (r result) tree() string { return r.Version[strings.LastIndexByte(r.Version, ' ')+1:] }

func plural(threads int) string {
	if threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", threads)
}

func largestError(e float64) string {
	if e == math.MaxFloat64 {
		return "no agreement"
	}
	return fmt.Sprintf("%.0e", e)
}

// limit is the milliseconds that work takes at a rate.
func limit(work, perSecond float64) float64 {
	if perSecond <= 0 {
		return 0
	}
	return work / perSecond * 1e3
}
