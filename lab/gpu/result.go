package gpu

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/lab/bench"
)

// result is the result of a step.
type result struct {
	Step    string    `json:"step"`
	Version string    `json:"version"`
	Card    string    `json:"card"`
	At      time.Time `json:"at"`
	// TookSeconds is the duration of the step.
	TookSeconds float64 `json:"took_seconds"`
	// Error is the reason of a failure. A failed step is repeated.
	Error string `json:"error,omitempty"`
	// Undone names what was missing for the comparison; the step is repeated once it is available.
	Undone string `json:"undone,omitempty"`
	// Values holds the figures. Their names end in their units.
	Values map[string]float64 `json:"values,omitempty"`
	// Notes holds further information.
	Notes map[string]string `json:"notes,omitempty"`
}

// found formats the figures and notes as a line.
func (r result) found() string {
	var parts []string
	for _, name := range sorted(r.Values) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, r.Values[name]))
	}
	for _, name := range sorted(r.Notes) {
		parts = append(parts, name+": "+oneLine(r.Notes[name]))
	}
	return strings.Join(parts, ", ")
}

// String formats a result for display.
func (r result) String() string {
	parts := []string{r.found()}
	if r.Undone != "" {
		parts = append(parts, "UNDONE: "+r.Undone)
	}
	if r.Error != "" {
		parts = append(parts, "FAILED: "+r.Error)
	}
	return fmt.Sprintf("%s (%.0f s): %s", r.Step, r.TookSeconds, strings.Join(parts, ", "))
}

const (
	// resultsFolder is the folder of results in the repository.
	resultsFolder = "lab/bench/results/card"
	// resultsName is the file of all results, one per line.
	resultsName = "results.jsonl"
)

// ledger holds all results, oldest first.
type ledger struct {
	path string
	rows []result
}

func openLedger(dir string) (*ledger, error) {
	l := &ledger{path: filepath.Join(dir, resultsName)}
	var err error
	l.rows, err = bench.Read[result](l.path)
	return l, err
}

func (l *ledger) add(r result) error {
	l.rows = append(l.rows, r)
	return bench.Append(l.path, []result{r})
}

// newest returns the newest admitted result of a step, or nil.
func (l *ledger) newest(step string, admits func(*result) bool) *result {
	for k := len(l.rows) - 1; k >= 0; k-- {
		if r := &l.rows[k]; r.Step == step && admits(r) {
			return r
		}
	}
	return nil
}

// last returns the newest admitted result of a step that did not fail, or nil.
func (l *ledger) last(step string, admits func(*result) bool) *result {
	return l.newest(step, func(r *result) bool { return r.Error == "" && admits(r) })
}
