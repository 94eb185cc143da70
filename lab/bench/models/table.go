package models

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/lab/bench/results"
)

// runTable prints the tables of all machines' results as Markdown.
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	folder := flags.String("results", results.Folder, "folder with the results of all machines")
	kernels := flags.Int("kernels", 0, "so many kernels that take longest, for each result")
	of := flags.String("of", "", "the tables of decoding, fast or quantised")
	below := flags.Float64("below", math.MaxFloat64, "kernels only of results below this ratio")
	layers := flags.String("layers", "", "only the kernels, untuned on one thread, of these models, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, known := formOf(*of)
	switch {
	case !known:
		return fmt.Errorf("-of %s: there are no results of that name", *of)
	case *of != "" && *layers != "":
		return errors.New("-of and -layers are two tables: give one of them")
	}
	machines, err := results.Machines(*folder, f.file)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, machine := range machines {
		r, err := results.Open[result](*folder, machine, f.file)
		if err != nil {
			return err
		}
		if *layers != "" {
			writeLayers(&out, machine, r.Rows, strings.Split(*layers, ","))
			continue
		}
		f.table(&out, machine, r.Rows)
		for _, row := range sorted(r.Rows) {
			if row.Ratio < *below && *kernels > 0 && len(row.Kernels) > 0 {
				row.writeKernels(&out, *kernels)
			}
		}
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// writeTables writes a machine's results as Markdown tables, one for each number of threads and kind of schedules.
func writeTables(out *strings.Builder, machine string, rows []result) {
	fmt.Fprintf(out, "\n### %s\n", machine)
	rows = sorted(rows)
	for _, threads := range []int{1, 2} {
		for _, schedules := range []string{untunedSchedules, tunedSchedules} {
			writePart(out, rows, threads, schedules)
		}
	}
}

// columns is the header of the table.
const columns = `| model | ms | ONNX Runtime | × (quartiles) | × with oneDNN | GFLOP | limit by FLOP | weights | limit by bytes | error | memory | theirs | compiled in | tree |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
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
	fmt.Fprintf(out, "| %s | %.4g | %.4g | **%.2f** (%.2f–%.2f) | %s | %.3g | %.3g ms | %s | %.3g ms | %s | %s | %s | %.3g s | %s |\n",
		name, r.Seconds*1e3, r.PeerSeconds*1e3, r.Ratio, r.RatioLow, r.RatioHigh, withOneDNN(r.OneDNNRatio),
		r.Flop/1e9, limit(r.Flop, r.Peak.FlopsPerSecond), show.Bytes(r.WeightBytes), limit(float64(r.WeightBytes), r.Peak.BytesPerSecond),
		largestError(r.RelativeError), show.Bytes(r.Memory), show.Bytes(r.PeerMemory), r.Compiled.Seconds, r.Version)
}

// withOneDNN formats the ratio to ONNX Runtime with oneDNN, if that took part.
func withOneDNN(ratio float64) string {
	if ratio == 0 {
		return show.Missing
	}
	return fmt.Sprintf("%.2f", ratio)
}

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

// limit returns the milliseconds that work takes at a rate.
func limit(work, perSecond float64) float64 {
	if perSecond <= 0 {
		return 0
	}
	return work / perSecond * 1e3
}
