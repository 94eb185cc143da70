package models

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// runTable prints the tables of all machines' results as Markdown.
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	folder := flags.String("results", bench.Folder, "folder with the results of all machines")
	kernels := flags.Int("kernels", 0, "so many kernels that take longest, for each result")
	of := flags.String("of", "", "the tables of decoding, fast or quantised")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, known := formOf(*of)
	if !known {
		return fmt.Errorf("-of %s: there are no results of that name", *of)
	}
	machines, err := bench.Machines(*folder, f.file)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, machine := range machines {
		r, err := bench.Open[result](*folder, machine, f.file)
		if err != nil {
			return err
		}
		f.table(&out, machine, r.Rows)
		for _, row := range sorted(r.Rows) {
			row.writeKernels(&out, *kernels)
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

// modelColumns are the headings of the table of models.
const modelColumns = "model | >ms | >ONNX Runtime | >× (quartiles) | >× with oneDNN | >GFLOP | >limit by FLOP | >weights | >limit by bytes | " +
	">error | >memory | >theirs | >compiled in | tree"

func writePart(out *strings.Builder, rows []result, threads int, schedules string) {
	table := bench.NewTable(modelColumns)
	for _, r := range rows {
		if r.Threads != threads || r.Schedules != schedules {
			continue
		}
		name := r.Model
		if r.Schedules == tunedSchedules && r.Compiled.Tuned < r.Compiled.Tasks {
			name += fmt.Sprintf(" (%d of %d tasks)", r.Compiled.Tuned, r.Compiled.Tasks)
		}
		table.Rowf("%s | %s | %s | %.3g | %.3g ms | %s | %.3g ms | %s | %.3g s | %s",
			name, r.times(), bench.Known(r.OneDNNRatio, bench.Times), r.Flop/1e9, limit(r.Flop, r.Peak.FlopsPerSecond),
			humanize.Bytes(r.WeightBytes), limit(float64(r.WeightBytes), r.Peak.BytesPerSecond), r.errorAndMemory(), r.Compiled.Seconds, r.Version)
	}
	table.Write(out, schedules+", "+bench.Threads(threads))
}

// times formats the columns of our time, ONNX Runtime's, and the ratio.
func (r result) times() string {
	return fmt.Sprintf("%.4g | %.4g | **%.2f** (%.2f–%.2f)", r.Seconds*1e3, r.PeerSeconds*1e3, r.Ratio, r.RatioLow, r.RatioHigh)
}

// errorAndMemory formats the columns of the error, our memory and ONNX Runtime's.
func (r result) errorAndMemory() string {
	return fmt.Sprintf("%s | %s | %s", largestError(r.RelativeError), humanize.Bytes(r.Memory), humanize.Bytes(r.PeerMemory))
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
