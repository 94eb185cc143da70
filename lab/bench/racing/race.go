package main

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/stat"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

const none = tilthv1.ErrorClass_ERROR_CLASS_NONE

const (
	// group is how many candidates take turns.
	group = 8
	// longSamples of each are what the short measurements are held against.
	longSamples = 64
	longBudget  = 10 * time.Second
)

// result is what was measured of a task.
type result struct {
	Task       string      `json:"task"`
	Candidates []candidate `json:"candidates"`
	// SearchSeconds, RaceSeconds and LongSeconds are what the measurements took, all included.
	SearchSeconds float64 `json:"search_s"`
	RaceSeconds   float64 `json:"race_s"`
	LongSeconds   float64 `json:"long_s"`
}

// candidate has the samples of each measurement in seconds. Those of one group took turns.
type candidate struct {
	Group  int       `json:"group"`
	Search []float64 `json:"search"`
	Race   []float64 `json:"race"`
	Long   []float64 `json:"long"`
	// Ratio is the calibration's in the long measurement.
	Ratio float64 `json:"ratio"`
}

// race measures all candidates as a search does, and then, in groups, as finalists and long.
func (b *bench) race(ctx context.Context, t *task) (*result, error) {
	r := &result{Task: t.Name}
	searched, seconds, err := b.run(ctx, t, t.Candidates, false, runner.Limits{})
	if err != nil {
		return nil, err
	}
	r.SearchSeconds = seconds
	order := slices.DeleteFunc(slices.Clone(t.Candidates), func(id string) bool { return len(searched[id].Samples) == 0 })
	slices.SortStableFunc(order, func(x, y string) int {
		return cmp.Compare(stat.Of(searched[x].Samples).Median, stat.Of(searched[y].Samples).Median)
	})
	for g, ids := range groups(order) {
		raced, raceSeconds, err := b.run(ctx, t, ids, true, runner.Limits{})
		if err != nil {
			return nil, err
		}
		long, longSeconds, err := b.run(ctx, t, ids, true, runner.Limits{Samples: longSamples, LeastSamples: longSamples, Budget: longBudget})
		if err != nil {
			return nil, err
		}
		r.RaceSeconds += raceSeconds
		r.LongSeconds += longSeconds
		for _, id := range ids {
			r.Candidates = append(r.Candidates, candidate{g, searched[id].Samples, raced[id].Samples, long[id].Samples, long[id].CalibrationRatio})
		}
	}
	return r, nil
}

// groups puts the best of a search, which would be its finalists, into the first group, and deals the others out, so
// that each other group has candidates that are close and ones that are not.
func groups(order []string) [][]string {
	list := [][]string{order[:min(group, len(order))]}
	rest := order[len(list[0]):]
	n := (len(rest) + group - 1) / group
	dealt := make([][]string, n)
	for k, id := range rest {
		dealt[k%n] = append(dealt[k%n], id)
	}
	return append(list, dealt...)
}

// run measures candidates and returns their outcomes and the seconds it took.
func (b *bench) run(ctx context.Context, t *task, ids []string, finalists bool, limits runner.Limits) (map[string]runner.Outcome, float64, error) {
	plan := runner.Plan{Device: b.backend.Device(b.target), Harness: t.Harness, Reference: t.Reference, Candidates: t.Objects, Kernels: ids, Finalists: finalists,
		Threads: b.target.Threads(), CPUs: b.target.Affinity(), Seed: 1, ReferenceCache: filepath.Join(t.Dir, "results"), Calibration: b.calibration, Limits: limits}
	outcomes, begin := map[string]runner.Outcome{}, time.Now()
	err := runner.Measure(ctx, plan, func(o runner.Outcome) { outcomes[o.Kernel] = o })
	return outcomes, time.Since(begin).Seconds(), err
}
