package costmodel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
)

// Sample is a measured candidate.
type Sample struct {
	// Features includes the analytic cost. All samples of a model have the same feature set.
	Features costfeatures.Row
	// Task names the group of candidates to compare, such as the workload's digest.
	Task string
	// LatencySeconds is the latency; 0 for a failed candidate, which is ignored.
	LatencySeconds float64
}

// Speed returns the base-2 logarithm of the executions per nanosecond.
func (s *Sample) Speed() float64 { return -math.Log2(s.LatencySeconds * 1e9) }

// Gain returns the label of a sample: the base-2 logarithm of the analytic cost's cycles per nanosecond of
// the latency. Within a task, candidates of equal gain are ordered by their costs.
func (s *Sample) Gain() float64 {
	cost, _ := s.Features.Cost()
	return cost + s.Speed()
}

// usableSamples returns the usable samples, ordered by task name: those with a latency and an analytic cost.
func usableSamples(samples []Sample) ([]Sample, error) {
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

// groups returns the number of consecutive samples of each task.
func groups(sorted []Sample) (sizes []int) {
	for k, s := range sorted {
		if k == 0 || s.Task != sorted[k-1].Task {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

// shares returns the throughput of each sample relative to the best of its task.
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
