package gpu

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// runTable prints the results of all cards and the goals as Markdown.
func runTable(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	dir := flags.String("out", resultsFolder, "folder with the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := openLedger(*dir)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, l.table())
	return err
}

// table returns Markdown for each card. Without results it only lists the goals.
func (l *ledger) table() string {
	var out strings.Builder
	cards := l.cards()
	if len(cards) == 0 {
		out.WriteString("\nNo card was measured yet.\n")
		page{l, ""}.writeLimits(&out)
	}
	for _, card := range cards {
		p := page{l, card}
		fmt.Fprintf(&out, "\n%s\n", card)
		p.writeLimits(&out)
		p.writeProducts(&out)
		p.writeModels(&out)
		p.writeChecks(&out)
	}
	return out.String()
}

// cards returns the cards with results, in order of their first result.
func (l *ledger) cards() (list []string) {
	for _, r := range l.rows {
		if !slices.Contains(list, r.Card) {
			list = append(list, r.Card)
		}
	}
	return list
}

// page holds the results of a card.
type page struct {
	*ledger
	card string
}

// of returns the newest result of a step, preferably one with peers, or nil.
func (p page) of(step string) *result {
	if r := p.last(step, func(r *result) bool { return p.own(r) && r.Undone == "" }); r != nil {
		return r
	}
	return p.last(step, p.own)
}

// own reports whether a result belongs to this card.
func (p page) own(r *result) bool { return r.Card == p.card }

// copies returns the rate of the card's memory in GB/s, or 0.
func (p page) copies() float64 {
	if r := p.of(machineStep); r != nil {
		return r.Values[copyRate]
	}
	return 0
}

func (p page) writeLimits(out *strings.Builder) {
	table := bench.NewTable("what | limit | >measured | >geomean | >worst | met")
	for _, l := range limits(p.copies()) {
		f := l.measured(p.of)
		geomean, worst := "", ""
		if f.count > 0 {
			geomean, worst = l.unit(f.geomean), l.unit(f.worst)
		}
		table.Rowf("%s | %s | %d of %d | %s | %s | %s", l.what, l.bounds(), f.count, len(l.steps), geomean, worst, l.met(f))
	}
	table.Write(out, "")
}

func (p page) writeProducts(out *strings.Builder) {
	table := bench.NewTable("product | type | numerics | matrices in | >untuned | >tuned | >cuBLAS | >Triton | >× cuBLAS | >× Triton | >× untuned | " +
		">TFLOP/s | >GB/s | >of memory | >trials | >a trial | tree")
	for _, x := range products() {
		r := p.of(x.step())
		if r == nil {
			continue
		}
		v := r.Values
		table.Rowf("%d × %d × %d | %v | %s | %s | %s | %s | %s | %s | **%s** | %s | %s | %.3g | %.3g | %s | %.0f | %s | %s",
			x.m, x.k, x.n, x.dtype, x.numerics, cmp.Or(r.Notes[matricesNote], humanize.Missing), seconds(v["untuned_s"]), seconds(v["tuned_s"]),
			contended(r, "peer"), contended(r, "triton"), bench.Known(v["of_peer"], bench.Times), bench.Known(v["of_triton"], bench.Times),
			bench.Known(v["of_untuned"], bench.Times), v["tuned_tflops"], v["tuned_gbps"],
			bench.Known(ratioOf(v["tuned_gbps"], p.copies()), bench.Percent), v["trials"], seconds(v["trial_s"]), r.Version)
	}
	table.Write(out, "")
}

// contended formats a contender's time, with a mark if its work could not be a graph.
func contended(r *result, name string) string {
	took := seconds(r.Values[name+"_s"])
	if strings.HasPrefix(r.Notes[wayNote(name)], "launches, ") {
		took += " (no graph)"
	}
	return took
}

func (p page) writeModels(out *strings.Builder) {
	table := bench.NewTable("model | >batch | numerics | >untuned | >tuned | >torch.compile | >× | >untuned × | >× untuned | >tasks tuned | >load | " +
		">first inference | >trials | >a trial | tree")
	for _, m := range allModels() {
		r := p.of(m.step())
		if r == nil {
			continue
		}
		v := r.Values
		table.Rowf("%s | %d | %s | %s | %s | %s | **%s** | %s | %s | %.0f of %.0f | %s | %s | %.0f | %s | %s",
			m.name, m.batch, m.numerics, seconds(v["untuned_s"]), seconds(v["tuned_s"]), contended(r, "peer"),
			bench.Known(v["of_peer"], bench.Times), bench.Known(v["untuned_of_peer"], bench.Times), bench.Known(v["of_untuned"], bench.Times),
			v["tuned_tasks"], v["tasks"], seconds(v["load_s"]), seconds(v["first_s"]), v["trials"], seconds(v["trial_s"]), r.Version)
	}
	table.Write(out, "")
}

// writeChecks writes a table of the other steps' findings, missing comparisons and failures.
func (p page) writeChecks(out *strings.Builder) {
	table := bench.NewTable("step |  | tree")
	row := func(step, text, version string) {
		table.Rowf("%s | %s | %s", step, strings.ReplaceAll(text, "|", "\\|"), version)
	}
	for _, s := range steps() {
		r := p.of(s.name)
		if r != nil && !compares(s.name) {
			row(s.name, r.found(), r.Version)
		}
		if r != nil && r.Undone != "" {
			row(s.name, "not compared: "+oneLine(r.Undone), r.Version)
		}
		if e := p.newest(s.name, p.own); e != nil && e.Error != "" {
			row(s.name, "**failed**: "+oneLine(e.Error), e.Version)
		}
	}
	table.Write(out, "")
}

// compares reports whether a step has its own table.
func compares(step string) bool {
	return strings.HasPrefix(step, "product ") || strings.HasPrefix(step, "model ")
}

// lineBytes bounds the shown part of a message.
const lineBytes = 200

func oneLine(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(line[:min(len(line), lineBytes)], "")
}

func seconds(v float64) string { return bench.Known(v, humanize.Seconds) }
