package costmodel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/costmodel/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Sample is a measured candidate.
type Sample struct {
	// Features are those of features.Names.
	Features []float32
	// Task names what candidates are compared within, e.g. by the workload's digest.
	Task string
	// LatencySeconds is how long the candidate took; 0 when it failed, which counts as no throughput at all.
	LatencySeconds float64
	// Weight is how much the sample counts beside others; 0 means 1.
	Weight float64
}

// Loss is what training makes small.
type Loss uint8

const (
	// Throughput is the squared error of the throughput, as a share of that of the task's best sample.
	Throughput Loss = iota
	// Order is the logistic loss of the wrong order of two samples of a task, weighted by how far apart their throughputs are.
	Order
)

// Options are what training may choose; the zero value suits thousands of samples.
type Options struct {
	// Seed determines what is drawn at random.
	Seed uint64
	// Trees is how many are added; 0 means 100.
	Trees int
	// Leaves is the most leaves of a tree; 0 means 31.
	Leaves int
	// LearningRate scales each tree; 0 means 0.1.
	LearningRate float64
	Loss         Loss
	// Workers is how many processors are used; 0 means all. The model does not depend on it.
	Workers int
}

// Train makes a model of the samples, or adds trees to base, which is not changed and should have been trained with the same loss. The
// result depends on the samples, their order and the options alone. It stops between trees when the context ends.
func Train(ctx context.Context, base *Model, samples []Sample, o Options) (*Model, error) {
	data, err := dataOf(samples)
	if err != nil {
		return nil, err
	}
	var from *gbdt.Model
	if base != nil {
		from = base.trees
	}
	trees, err := gbdt.Train(ctx, data, o.loss(), o.params(), from)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	return newModel(trees)
}

func (o Options) loss() gbdt.Loss {
	if o.Loss == Order {
		return gbdt.Rank{}
	}
	return gbdt.Squared{}
}

func (o Options) params() gbdt.Params {
	p := gbdt.DefaultParams()
	p.Seed, p.Workers = o.Seed, o.Workers
	if o.Trees > 0 {
		p.Trees = o.Trees
	}
	if o.Leaves > 0 {
		p.Leaves = o.Leaves
	}
	if o.LearningRate > 0 {
		p.LearningRate = o.LearningRate
	}
	if o.Loss == Order {
		p.MinWeight = 1e-2 // second derivatives of pairs are small
	}
	return p
}

// dataOf puts the samples in the order of their tasks, which groups need, and otherwise leaves their order.
func dataOf(samples []Sample) (*gbdt.Data, error) {
	d := &gbdt.Data{Features: features.Names()}
	sorted := slices.Clone(samples)
	slices.SortStableFunc(sorted, func(a, b Sample) int { return strings.Compare(a.Task, b.Task) })
	d.Labels = Labels(sorted)
	d.Rows = make([]float32, 0, len(sorted)*len(d.Features))
	for k, s := range sorted {
		if len(s.Features) != len(d.Features) {
			return nil, fmt.Errorf("cost model: a sample of task %s has %d features, not the %d of %s", s.Task, len(s.Features), len(d.Features), features.Set)
		}
		if k == 0 || s.Task != sorted[k-1].Task {
			d.Groups = append(d.Groups, 0)
		}
		d.Groups[len(d.Groups)-1]++
		d.Rows = append(d.Rows, s.Features...)
		weight := s.Weight
		if weight == 0 {
			weight = 1
		}
		d.Weights = append(d.Weights, float32(weight))
	}
	return d, nil
}

// Labels are what training makes of the samples' latencies: the throughput as a share of that of the task's best sample, 0 for failures.
func Labels(samples []Sample) []float32 {
	labels, best := make([]float32, len(samples)), fastest(samples)
	for k, s := range samples {
		labels[k] = label(s.LatencySeconds, best[s.Task])
	}
	return labels
}

// fastest is the least latency of each task's samples.
func fastest(samples []Sample) map[string]float64 {
	best := map[string]float64{}
	for _, s := range samples {
		if b, known := best[s.Task]; measured(s.LatencySeconds) && (!known || s.LatencySeconds < b) {
			best[s.Task] = s.LatencySeconds
		}
	}
	return best
}

// label is the throughput as a share of the best one's; 0 for a failure.
func label(latency, best float64) float32 {
	if !measured(latency) {
		return 0
	}
	return float32(best / latency)
}

func measured(latency float64) bool { return latency > 0 && !math.IsInf(latency, 0) }
