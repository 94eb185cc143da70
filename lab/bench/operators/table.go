package operators

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/lab/bench/results"
)

// runTable prints the rows of a set as Markdown tables. The tasks of models belong to the set "ansor".
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	folder := flags.String("results", results.Folder, "folder with the rows of all machines")
	set := flags.String("set", "ansor", "the set whose rows to write: "+setNames())
	points := flags.Bool("points", false, "write the default and the best point of each workload, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, ok := sets[*set]; !ok {
		return noSet(*set)
	}
	machines, err := results.Machines(*folder, rowsName)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, machine := range machines {
		r, err := results.Open[row](*folder, machine, rowsName)
		if err != nil {
			return err
		}
		list := slices.DeleteFunc(sorted(r.Rows), func(one row) bool { return setOf(one) != *set })
		writeTable(&out, machine, list, *points)
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// writeTable writes a machine's rows as Markdown, grouped by threads and batch.
func writeTable(out *strings.Builder, machine string, list []row, points bool) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Threads == list[0].Threads && list[n].Batch == list[0].Batch {
			n++
		}
		writeGroup(out, machine, list[:n], points)
		list = list[n:]
	}
}

func writeGroup(out *strings.Builder, machine string, list []row, points bool) {
	first, tuned := list[0], false
	for _, r := range list {
		tuned = tuned || r.TunedSeconds > 0
	}
	title := fmt.Sprintf("%d threads", first.Threads)
	if first.Threads == 1 {
		title = "1 thread"
	}
	if first.Batch > 0 {
		title = fmt.Sprintf("batch %d, %s", first.Batch, title)
	}
	fmt.Fprintf(out, "\n%s; %s: %s\n\n", title, machine, first.Machine)
	out.WriteString("| operator | GFLOP | MB | limit by FLOP | by bytes | bound by | default | GFLOP/s | of limit |")
	rule := "|---|--:|--:|--:|--:|---|--:|--:|--:|"
	if tuned {
		out.WriteString(" tuned | GFLOP/s | of limit |")
		rule += "--:|--:|--:|"
	}
	libraries := librariesOf(list)
	for _, library := range libraries {
		fmt.Fprintf(out, " %s × |", library)
		rule += "--:|"
	}
	fmt.Fprintf(out, " tree |\n%s---|\n", rule)
	for _, r := range list {
		r.write(out, tuned, points, libraries)
	}
	writeSums(out, list)
	writeVersus(out, list)
}

func (r row) write(out *strings.Builder, tuned, points bool, libraries []string) {
	least, by := r.limit()
	fmt.Fprintf(out, "| %s | %.3g | %.3g | %s | %s | %s | %s |", r.title(), r.Flop/1e9, float64(r.ConstantBytes+r.OtherBytes)/1e6,
		known(r.FlopSeconds), show.Seconds(r.ByteSeconds), by, columns(r.Flop, least, r.DefaultSeconds))
	if tuned {
		fmt.Fprintf(out, " %s |", columns(r.Flop, least, r.TunedSeconds))
	}
	fmt.Fprintf(out, "%s %s |\n", r.cells(libraries), r.Version)
	if points {
		fmt.Fprintf(out, "<!-- default %s\n     best    %s -->\n", r.DefaultPoint, r.TunedPoint)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(out, "<!-- failed: %s -->\n", f)
	}
}

// writeSums writes the number of rows near their limits, and the sums over all calls.
func writeSums(out *strings.Builder, list []row) {
	const near = 0.9
	var limit, untuned float64
	reached := 0
	list = slices.DeleteFunc(slices.Clone(list), func(r row) bool { return r.FlopSeconds == 0 })
	if len(list) == 0 {
		return
	}
	for _, r := range list {
		least, _ := r.limit()
		if r.DefaultSeconds > 0 && least >= near*r.DefaultSeconds {
			reached++
		}
		limit, untuned = limit+float64(r.Calls)*least, untuned+float64(r.Calls)*r.DefaultSeconds
	}
	fmt.Fprintf(out, "\n%d of %d reach %.0f %% of the limit by default. All together: limit %s, default %s.\n", reached, len(list), 100*near,
		show.Seconds(limit), show.Seconds(untuned))
}

func (r row) title() string {
	title := r.Operator
	if r.Shape != "" {
		title += " (" + r.Shape + ")"
	}
	if r.Calls > 1 {
		title += fmt.Sprintf(" %dx", r.Calls)
	}
	return title
}

// known formats a limit, or a dash if it is unknown.
func known(seconds float64) string {
	if seconds == 0 {
		return show.Missing
	}
	return show.Seconds(seconds)
}

// columns formats a latency and its rate.
func columns(flop, least, seconds float64) string {
	if seconds <= 0 {
		return strings.Join([]string{show.Missing, show.Missing, show.Missing}, " | ")
	}
	share := show.Missing
	if least > 0 {
		share = fmt.Sprintf("%.0f %%", 100*least/seconds)
	}
	return fmt.Sprintf("%s | %s | %s", show.Seconds(seconds), show.GFLOPS(flop, seconds), share)
}
