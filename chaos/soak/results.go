package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// table prints, for each setting, how many runs there were and how many passed since the last failure, and what failed
// how often.
func (r *results) table(w io.Writer) {
	runs, clean := map[string]int{}, map[string]int{}
	times, last := map[string]int{}, map[string]failure{}
	var settings, tests []string
	for _, run := range r.runs {
		s := run.setting.String()
		if runs[s]++; runs[s] == 1 {
			settings = append(settings, s)
		}
		clean[s]++
		for _, f := range run.Failures {
			clean[s] = 0
			name := f.Package + " " + f.Test
			if times[name]++; times[name] == 1 {
				tests = append(tests, name)
			}
			last[name] = f
		}
	}
	slices.SortStableFunc(tests, func(a, b string) int { return times[b] - times[a] })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "SETTING\tRUNS\tCLEAN SINCE THE LAST FAILURE")
	for _, s := range settings {
		fmt.Fprintf(table, "%s\t%d\t%d\n", s, runs[s], clean[s])
	}
	if len(tests) == 0 {
		return
	}
	fmt.Fprintln(table, "\nFAILED\tTIMES\tOUTPUT OF THE LAST")
	for _, name := range tests {
		fmt.Fprintf(table, "%s\t%d of %d\t%s\n", name, times[name], len(r.runs), last[name].Output)
	}
}
