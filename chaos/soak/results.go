package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// results are the runs of this and earlier calls, a line of JSON each in a file.
type results struct {
	file *os.File
	runs []result
}

func open(dir string) (*results, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of results: %w", err)
	}
	path := filepath.Join(dir, "results.jsonl")
	runs, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading earlier results: %w (remove %s to begin anew)", err, path)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the results: %w", err)
	}
	return &results{file, runs}, nil
}

func read(path string) (runs []result, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}

func (r *results) close() { _ = r.file.Close() }

func (r *results) add(run result) error {
	r.runs = append(r.runs, run)
	if err := json.NewEncoder(r.file).Encode(run); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// table prints, for each setting, how many runs there were, of how many packages, and how many of each were clean
// since its last failure; and what failed how often.
func (r *results) table(w io.Writer) {
	runs, clean := map[setting]int{}, map[place]int{}
	times, last := map[string]int{}, map[string]result{}
	var settings []setting
	var tests []string
	for _, run := range r.runs {
		if runs[run.setting]++; runs[run.setting] == 1 {
			settings = append(settings, run.setting)
		}
		clean[run.place()]++
		for _, test := range run.Failed {
			clean[run.place()] = 0
			name := run.Package + " " + test
			if times[name]++; times[name] == 1 {
				tests = append(tests, name)
			}
			last[name] = run
		}
	}
	slices.SortStableFunc(tests, func(a, b string) int { return times[b] - times[a] })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "SETTING\tPACKAGES\tRUNS\tCLEAN RUNS OF EACH SINCE ITS LAST FAILURE")
	for _, s := range settings {
		packages, least := 0, math.MaxInt
		for at, n := range clean {
			if at.setting == s {
				packages++
				least = min(least, n)
			}
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d at least\n", s, packages, runs[s], least)
	}
	if len(r.runs) > 0 {
		fmt.Fprintf(table, "\nfrom %s on, to %s\n", r.runs[0].Revision, r.runs[len(r.runs)-1].Revision)
	}
	if len(tests) == 0 {
		return
	}
	fmt.Fprintln(table, "\nFAILED\tTIMES\tLAST\tITS OUTPUT")
	for _, name := range tests {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", name, times[name], last[name].setting, last[name].Output)
	}
}
