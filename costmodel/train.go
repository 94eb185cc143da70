package costmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Loss selects the loss function of training.
type Loss uint8

const (
	// Mixed uses Latency for the first half of the trees, which estimates distances better, and Order for the
	// second half, which ranks better.
	Mixed Loss = iota
	// Latency is the squared error of the logarithm of the latency. Fast samples weigh more, by their share
	// of the throughput of the task's best.
	Latency
	// Throughput is the squared error of that share. For small errors it equals the squared error of the
	// latency's logarithm, weighted by the square of the share.
	Throughput
	// Order is the logistic loss of misordered pairs of samples of a task, weighted by the distance of their
	// latencies.
	Order
)

// Options configures training. The zero value suits thousands of samples.
type Options struct {
	// Seed determines all random draws.
	Seed uint64
	// Trees is the number of trees to add; 0 lets For choose.
	Trees int
	// Leaves is the maximum number of leaves per tree; 0 lets For choose.
	Leaves int
	// LearningRate scales each tree; 0 means 0.1.
	LearningRate float64
	Loss         Loss
	// Trust is the factor by which the added trees are scaled, because lessons of some tasks are only partly
	// true of another. 0 means n/(n+10) for n tasks.
	Trust float64
	// Workers is the number of processors to use; 0 means all. It does not affect the model.
	Workers int
}

const (
	// manyTasks is the number of tasks from which a model has twice the trees with half the leaves.
	manyTasks = 100
	// featureFraction and rowFraction are the parts of the features and samples that each tree uses.
	featureFraction, rowFraction = 0.5, 0.8
	// minShare is the minimum share of the total weight in a leaf. minWeight is the minimum weight if
	// there are few samples.
	minShare, minWeight = 0.002, 2
	// minCurvature is the minimum sum of second derivatives in a leaf for the pairwise loss, whose
	// derivatives are small.
	minCurvature = 1e-2
	// apart is the minimum distance, as a base-2 logarithm, of two latencies whose order is learned.
	// steepness scales the distance, and pairs is the number of comparisons per sample and tree.
	apart, steepness, pairs = 0.02, 6, 16
	// halfTrusted is the number of tasks at which the trust is one half.
	halfTrusted = 10
)

// For chooses the number of trees and leaves for a number of tasks, unless they are given. With 223 tasks,
// more trees rank other tasks better (0.880 instead of 0.878 of the pairs). With 26 tasks, more trees
// overfit: the best guess reaches 82 to 84 % of the best speed instead of 87 %.
func (o Options) For(tasks int) Options {
	trees, leaves := 100, 63
	if tasks >= manyTasks {
		trees, leaves = 200, 31
	}
	o.Trees, o.Leaves = cmp.Or(o.Trees, trees), cmp.Or(o.Leaves, leaves)
	return o
}

// trust returns the factor by which trees learned from a number of tasks are scaled.
func (o Options) trust(tasks int) float64 {
	if o.Trust > 0 {
		return o.Trust
	}
	return float64(tasks) / float64(tasks+halfTrusted)
}

// weight returns the weight of a sample, given its share of the best throughput of its task.
func (o Options) weight(share float64) float64 {
	if o.Loss == Throughput {
		share *= share
	}
	return max(share, 1e-6) // every sample keeps a positive weight
}

func (o Options) loss() gbdt.Loss {
	if o.Loss == Order {
		return gbdt.Rank{Apart: apart, Steepness: steepness, Pairs: pairs}
	}
	return gbdt.Squared{}
}

func (o Options) params(d *gbdt.Data) gbdt.Params {
	p := gbdt.DefaultParams()
	p.Seed, p.Workers, p.FeatureFraction, p.RowFraction = o.Seed, o.Workers, featureFraction, rowFraction
	p.Trees, p.Leaves = o.Trees, o.Leaves
	if o.LearningRate > 0 {
		p.LearningRate = o.LearningRate
	}
	if o.Loss == Order {
		p.MinWeight = minCurvature
		return p
	}
	weight := 0.0
	for _, w := range d.Weights {
		weight += float64(w)
	}
	p.MinWeight = max(minShare*weight, minWeight)
	return p
}

// errNothing is returned by training without usable samples.
var errNothing = errors.New("cost model: no sample was right and has an analytic cost: there is nothing to learn from")

// Data returns the training data of a new model: successful samples, task by task. Labels are gains relative
// to other samples of the task. For the loss Order, labels are speeds, and offsets are the speeds according
// to the analytic cost. level is the mean gain of tasks, which the trees do not learn.
func Data(samples []Sample, loss Loss) (d *gbdt.Data, level float64, err error) {
	sorted, err := usableSamples(samples)
	if err != nil {
		return nil, 0, err
	}
	return Options{Loss: loss}.data(nil, sorted)
}

// Train trains a model on the samples, or adds trees to a copy of base. It does not learn what all samples of
// a task have in common, because only the order of a task's candidates matters and the next task differs. The
// result depends only on the samples, their order and the options. It checks ctx between trees.
func Train(ctx context.Context, base *Model, samples []Sample, o Options) (*Model, error) {
	o = o.For(tasksOf(samples))
	if o.Loss != Mixed {
		return train(ctx, base, samples, o)
	}
	first, second := o, o
	first.Loss, first.Trees = Latency, (o.Trees+1)/2
	second.Loss, second.Trees = Order, o.Trees/2
	base, err := train(ctx, base, samples, first)
	if err != nil || second.Trees == 0 {
		return base, err
	}
	return train(ctx, base, samples, second)
}

// tasksOf counts the tasks of the samples.
func tasksOf(samples []Sample) int {
	known := map[string]bool{}
	for _, s := range samples {
		known[s.Task] = true
	}
	return len(known)
}

// train adds trees for one loss.
func train(ctx context.Context, base *Model, samples []Sample, o Options) (*Model, error) {
	sorted, err := usableSamples(samples)
	if err != nil {
		return nil, err
	}
	d, level, err := o.data(base, sorted)
	if err != nil {
		return nil, err
	}
	var from *gbdt.Model
	if base != nil {
		from = base.trees
	}
	trees, err := gbdt.Train(ctx, d, o.loss(), o.params(d), from)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	trees = trees.Scaled(base.Trees(), o.trust(len(d.Groups)))
	if base == nil {
		trees = trees.Raised(level)
	}
	return newModel(sorted[0].Features.Set, trees)
}

// data returns the training data of the trees. level is the mean gain of a task, to be added to their predictions.
func (o Options) data(base *Model, sorted []Sample) (d *gbdt.Data, level float64, err error) {
	if len(sorted) == 0 {
		return nil, 0, errNothing
	}
	d = &gbdt.Data{Features: sorted[0].Features.Set.Columns, Groups: groups(sorted)}
	for k, share := range shares(sorted, d.Groups) {
		d.Rows = append(d.Rows, sorted[k].Features.Values...)
		d.Weights = append(d.Weights, float32(o.weight(share)))
	}
	known := make([]float64, len(sorted)) // known holds the predictions of the base model
	if base != nil {
		if known, err = base.gains(rowsOf(sorted)); err != nil {
			return nil, 0, err
		}
	}
	for _, n := range d.Groups {
		first := len(d.Labels)
		own, weights := sorted[first:][:n], d.Weights[first:][:n]
		mean := weightedMean(weights, func(k int) float64 { return own[k].Gain() })
		before := weightedMean(weights, func(k int) float64 { return known[first+k] })
		for k := range own {
			d.Labels = append(d.Labels, float32(own[k].Gain()-mean+before))
		}
		level += mean / float64(len(d.Groups))
	}
	if o.Loss == Order {
		o.order(d, sorted)
	}
	return d, level, nil
}

// order prepares data for the pairwise loss: speeds as labels, the analytic cost as offsets.
func (o Options) order(d *gbdt.Data, sorted []Sample) {
	d.Offsets = make([]float64, len(sorted))
	for k := range sorted {
		d.Labels[k] = float32(sorted[k].Speed())
		d.Offsets[k] = sorted[k].Speed() - sorted[k].Gain()
	}
}

func weightedMean(weights []float32, value func(k int) float64) float64 {
	sum, all := 0.0, 0.0
	for k, w := range weights {
		sum, all = sum+float64(w)*value(k), all+float64(w)
	}
	return sum / all
}

func rowsOf(samples []Sample) []costfeatures.Row {
	rows := make([]costfeatures.Row, len(samples))
	for k := range samples {
		rows[k] = samples[k].Features
	}
	return rows
}
