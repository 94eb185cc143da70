package soak

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/tilth-dev/tilth/lab/bench"
)

// entry sums up the runs of a package in a setting.
type entry struct {
	Package string `json:"package"`
	setting
	Runs int `json:"runs"`
	// Clean counts the runs since the last failure.
	Clean int `json:"clean"`
	// From and To are the first and last commit of the clean runs.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// CPUSeconds is the processor time of all runs.
	CPUSeconds float64 `json:"cpu_seconds"`
	// Failures counts failures by test.
	Failures map[string]int `json:"failures,omitempty"`
}

func (e *entry) place() place { return place{e.Package, e.setting} }

func (e *entry) add(r result) {
	e.Runs++
	e.CPUSeconds += r.CPUSeconds
	if len(r.Failed) > 0 {
		e.Clean, e.From, e.To = 0, "", ""
		if e.Failures == nil {
			e.Failures = map[string]int{}
		}
		for _, test := range r.Failed {
			e.Failures[test]++
		}
		return
	}
	if e.Clean++; e.Clean == 1 {
		e.From = r.Revision
	}
	e.To = r.Revision
}

// ledger sums up all runs of this and earlier calls on any machine. Its file in the repository has a line of JSON for
// each package and setting.
type ledger struct {
	path    string
	entries map[place]*entry
}

func openLedger(path string) (*ledger, error) {
	rows, err := bench.Read[*entry](path)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w (remove %s to start empty)", err, path)
	}
	l := &ledger{path, map[place]*entry{}}
	for _, e := range rows {
		l.entries[e.place()] = e
	}
	return l, nil
}

// add adds a run and rewrites the file.
func (l *ledger) add(r result) error {
	e := l.entries[r.place()]
	if e == nil {
		e = &entry{Package: r.Package, setting: r.setting}
		l.entries[r.place()] = e
	}
	e.add(r)
	if err := bench.Write(l.path, l.sorted()); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// forget drops packages that are not listed, because they were moved or removed.
func (l *ledger) forget(binaries []binary) {
	known := map[string]bool{}
	for _, b := range binaries {
		known[b.pkg] = true
	}
	maps.DeleteFunc(l.entries, func(at place, _ *entry) bool { return !known[at.pkg] })
}

func (l *ledger) sorted() []*entry {
	return slices.SortedFunc(maps.Values(l.entries), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), a.compare(b.setting))
	})
}

// table prints for each setting the number of packages, their runs, and their clean runs since the last failure,
// followed by the failures of each test.
func (l *ledger) table(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	entries := l.sorted()
	bySetting := map[setting][]*entry{}
	for _, e := range entries {
		bySetting[e.setting] = append(bySetting[e.setting], e)
	}
	fmt.Fprintln(table, "SETTING\tPACKAGES\tRUNS\tPROCESSOR TIME OF ONE RUN OF ALL\tCLEAN RUNS OF EACH SINCE ITS LAST FAILURE")
	for _, s := range slices.SortedFunc(maps.Keys(bySetting), setting.compare) {
		runs, seconds, least := 0, 0.0, bySetting[s][0].Clean
		for _, e := range bySetting[s] {
			runs += e.Runs
			seconds += e.CPUSeconds / float64(e.Runs)
			least = min(least, e.Clean)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f s\t%d at least\n", s, len(bySetting[s]), runs, seconds, least)
	}
	heading := "\nFAILED\tTIMES\tOF\tSETTING\tCLEAN RUNS SINCE"
	for _, e := range entries {
		for _, test := range slices.Sorted(maps.Keys(e.Failures)) {
			if heading != "" {
				fmt.Fprintln(table, heading)
				heading = ""
			}
			fmt.Fprintf(table, "%s %s\t%d\t%d\t%s\t%d\n", e.Package, test, e.Failures[test], e.Runs, e.setting, e.Clean)
		}
	}
}
