package card

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/lab/bench/results"
)

// result is the result of a step.
type result struct {
	Step    string    `json:"step"`
	Version string    `json:"version"`
	Card    string    `json:"card"`
	At      time.Time `json:"at"`
	// TookSeconds is the step's own time.
	TookSeconds float64 `json:"took_seconds"`
	// Error is why the step failed; it is done again then.
	Error string `json:"error,omitempty"`
	// Undone names what was missing for the comparison; the step is repeated once it is available.
	Undone string `json:"undone,omitempty"`
	// Values are its figures, by names that end in their units.
	Values map[string]float64 `json:"values,omitempty"`
	// Notes holds further information.
	Notes map[string]string `json:"notes,omitempty"`
}

// String is a result for people.
func (r result) String() string {
	var parts []string
	for _, name := range sorted(r.Values) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, r.Values[name]))
	}
	for _, name := range sorted(r.Notes) {
		parts = append(parts, name+": "+r.Notes[name])
	}
	if r.Undone != "" {
		parts = append(parts, "UNDONE: "+r.Undone)
	}
	if r.Error != "" {
		parts = append(parts, "FAILED: "+r.Error)
	}
	return fmt.Sprintf("%s (%.0f s): %s", r.Step, r.TookSeconds, strings.Join(parts, ", "))
}

const (
	// resultsFolder keeps results in the tree.
	resultsFolder = "lab/bench/results/card"
	// resultsName is the file of all results, a line each.
	resultsName = "results.jsonl"
)

// ledger is all results, the oldest first.
type ledger struct {
	path string
	rows []result
}

func openLedger(dir string) (*ledger, error) {
	l := &ledger{path: filepath.Join(dir, resultsName)}
	var err error
	l.rows, err = results.Read[result](l.path)
	return l, err
}

func (l *ledger) add(r result) error {
	l.rows = append(l.rows, r)
	return results.Append(l.path, []result{r})
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

// last is the newest one of those that did not fail.
func (l *ledger) last(step string, admits func(*result) bool) *result {
	return l.newest(step, func(r *result) bool { return r.Error == "" && admits(r) })
}
