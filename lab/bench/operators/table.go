package operators

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// runTable prints the rows of a set as Markdown tables.
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	folder := flags.String("results", bench.Folder, "folder with the rows of all machines")
	set := flags.String("set", "ansor", "the set whose rows to write: "+setNames())
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, ok := sets[*set]; !ok {
		return noSet(*set)
	}
	machines, err := bench.Machines(*folder, rowsName)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, machine := range machines {
		r, err := bench.Open[row](*folder, machine, rowsName)
		if err != nil {
			return err
		}
		list := slices.DeleteFunc(sorted(r.Rows), func(one row) bool { return !isOf(one, *set) })
		writeTable(&out, machine, list)
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// writeTable writes a machine's rows as Markdown, grouped by threads and batch.
func writeTable(out *strings.Builder, machine string, list []row) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Threads == list[0].Threads && list[n].Batch == list[0].Batch {
			n++
		}
		writeGroup(out, machine, list[:n])
		list = list[n:]
	}
}

func writeGroup(out *strings.Builder, machine string, list []row) {
	first := list[0]
	headings := "operator | >GFLOP | >MB | >limit by FLOP | >by bytes | bound by | >default | >GFLOP/s | >of limit"
	libraries := librariesOf(list)
	for _, library := range libraries {
		headings += " | >" + library + " ×"
	}
	table := bench.NewTable(headings + " | tree")
	for _, r := range list {
		r.write(table, libraries)
	}
	table.Write(out, fmt.Sprintf("batch %d, %s; %s: %s", first.Batch, bench.Threads(first.Threads), machine, first.Machine))
	writeSums(out, list)
	writeVersus(out, list)
}

func (r row) write(table *bench.Table, libraries []string) {
	least, by := r.limit()
	cells := strings.Join([]string{humanize.Missing, humanize.Missing, humanize.Missing}, " | ")
	if r.DefaultSeconds > 0 {
		cells = fmt.Sprintf("%s | %s | %s", humanize.Seconds(r.DefaultSeconds), humanize.GFLOPS(r.Flop, r.DefaultSeconds), bench.Known(least/r.DefaultSeconds, bench.Percent))
	}
	for _, library := range libraries {
		cell := humanize.Missing
		if a, ok := r.with(library); ok {
			cell = a.cell()
		}
		cells += " | " + cell
	}
	table.Rowf("%s | %.3g | %.3g | %s | %s | %s | %s | %s", r.title(), r.Flop/1e9, float64(r.ConstantBytes+r.OtherBytes)/1e6,
		bench.Known(r.FlopSeconds, humanize.Seconds), humanize.Seconds(r.ByteSeconds), by, cells, r.Version)
	for _, f := range r.Failures {
		table.Comment("failed: " + f)
	}
}

// writeSums writes the number of rows near their limits, and the sums over all rows.
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
		limit, untuned = limit+least, untuned+r.DefaultSeconds
	}
	fmt.Fprintf(out, "\n%d of %d reach %.0f %% of the limit by default. All together: limit %s, default %s.\n", reached, len(list), 100*near,
		humanize.Seconds(limit), humanize.Seconds(untuned))
}

func (r row) title() string { return r.Operator + " (" + r.Shape + ")" }
