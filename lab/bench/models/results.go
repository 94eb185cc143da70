package models

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/lab/bench"
)

// Schedules of a package.
const (
	untunedSchedules = "untuned"
	tunedSchedules   = "tuned"
)

// result is the result of one package against ONNX Runtime.
type result struct {
	Model     string `json:"model"`
	Threads   int    `json:"threads"`
	Schedules string `json:"schedules"`
	// Version is the version of the tree that compiled the package.
	Version  string   `json:"version"`
	Compiled compiled `json:"compiled"`
	measurement
}

// compiled is the output of 'tilth compile --json'.
type compiled struct {
	Package string  `json:"package"`
	Target  string  `json:"target"`
	Tasks   int     `json:"tasks"`
	Tuned   int     `json:"tuned"`
	Seconds float64 `json:"took_s"`
}

// Same reports whether two results have the same model, threads and schedules.
func (r result) Same(o result) bool {
	return r.Model == o.Model && r.Threads == o.Threads && r.Schedules == o.Schedules
}

// have reports whether a version has results of all kinds of packages.
func have(rows *bench.File[result], model string, threads int, version string, kinds []kind) bool {
	return !slices.ContainsFunc(kinds, func(k kind) bool {
		r := rows.Find(result{Model: model, Threads: threads, Schedules: k.schedules})
		return r == nil || r.Version != version
	})
}

// sorted sorts results by model, number of threads and schedules.
func sorted(rows []result) []result {
	return slices.SortedFunc(slices.Values(rows), func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Threads, b.Threads), -cmp.Compare(a.Schedules, b.Schedules))
	})
}
