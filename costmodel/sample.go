package costmodel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/features"
)

// Sample is a measured candidate.
type Sample struct {
	// Features has the analytic cost, too. Samples of a model are of one set.
	Features features.Row
	// Task names what candidates are compared within, e.g. by the workload's digest.
	Task string
	// LatencySeconds is how long the candidate took; 0 when it failed, which teaches nothing.
	LatencySeconds float64
}

// Speed is the logarithm, base 2, of a candidate's executions in a nanosecond.
func (s *Sample) Speed() float64 { return -math.Log2(s.LatencySeconds * 1e9) }

// Gain is what a model learns of a sample: the logarithm, base 2, of the cycles of its analytic cost for each
// nanosecond that it took. Within a task, candidates of the same gain are in the order of their costs.
func (s *Sample) Gain() float64 {
	cost, _ := s.Features.Cost()
	return cost + s.Speed()
}

// lessons are the samples that can be learnt from, task by task in the order of the tasks' names: those that did not
// fail and whose cost is known.
func lessons(samples []Sample) ([]Sample, error) {
	list := make([]Sample, 0, len(samples))
	for _, s := range samples {
		if set := samples[0].Features.Set; s.Features.Set != set || !s.Features.Whole() {
			return nil, fmt.Errorf("cost model: a sample of task %s has %d features of %s, not all of %s", s.Task, len(s.Features.Values),
				setName(s.Features.Set), setName(set))
		}
		if _, known := s.Features.Cost(); known && s.LatencySeconds > 0 && !math.IsInf(s.LatencySeconds, 0) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Sample) int { return strings.Compare(a.Task, b.Task) })
	return list, nil
}

// groups are how many consecutive samples each task has.
func groups(sorted []Sample) (sizes []int) {
	for k, s := range sorted {
		if k == 0 || s.Task != sorted[k-1].Task {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

// shares are the throughputs of samples, each as a share of that of its task's best.
func shares(sorted []Sample, sizes []int) []float64 {
	list := make([]float64, 0, len(sorted))
	for _, n := range sizes {
		own := sorted[len(list):][:n]
		best := slices.MinFunc(own, func(a, b Sample) int { return cmp.Compare(a.LatencySeconds, b.LatencySeconds) }).LatencySeconds
		for _, s := range own {
			list = append(list, best/s.LatencySeconds)
		}
	}
	return list
}
