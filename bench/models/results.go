package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/tilth-dev/tilth/bench/jsonlines"
)

// Which schedules a package was compiled with.
const (
	untunedSchedules = "untuned"
	tunedSchedules   = "tuned"
)

// result is one package of a model beside ONNX Runtime.
type result struct {
	Model     string `json:"model"`
	Threads   int    `json:"threads"`
	Schedules string `json:"schedules"`
	// Version is that of the program that compiled the package.
	Version  string   `json:"version"`
	Compiled compiled `json:"compiled"`
	measurement
}

// compiled is what 'tilth compile --json' prints.
type compiled struct {
	Package string  `json:"package"`
	Target  string  `json:"target"`
	Tasks   int     `json:"tasks"`
	Tuned   int     `json:"tuned"`
	Seconds float64 `json:"seconds"`
}

// results are those of all runs, a line of JSON each in a file; the last of equal model, threads and schedules counts.
type results struct {
	path string
	rows []result
}

func openResults(dir string) (*results, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &results{path: filepath.Join(dir, "results.jsonl")}
	rows, err := jsonlines.Read[result](r.path)
	r.rows = rows
	return r, err
}

// add appends rows to the file.
func (r *results) add(rows []result) error {
	if err := jsonlines.Append(r.path, rows); err != nil {
		return err
	}
	r.rows = append(r.rows, rows...)
	return nil
}

// have reports whether there are results of a version for all the schedules.
func (r *results) have(model string, threads int, version string, schedules []string) bool {
	for _, s := range schedules {
		if !slices.ContainsFunc(r.rows, func(row result) bool {
			return row.Model == model && row.Threads == threads && row.Version == version && row.Schedules == s
		}) {
			return false
		}
	}
	return true
}

// latest has the last result of each model, number of threads and schedules, in this order.
func (r *results) latest() []result {
	compare := func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Threads, b.Threads), -cmp.Compare(a.Schedules, b.Schedules))
	}
	var list []result
	for _, row := range slices.Backward(r.rows) {
		if !slices.ContainsFunc(list, func(o result) bool { return compare(o, row) == 0 }) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, compare)
	return list
}
