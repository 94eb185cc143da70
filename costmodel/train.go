package costmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// errNothing is what training on nothing is.
var errNothing = errors.New("cost model: no sample was right and has an analytic cost: there is nothing to learn from")

// Data is what a new model is trained on: samples that did not fail, task by task. Its labels are what samples gain
// beside others of their task; with the loss Order they are speeds, and its offsets what the analytic cost says of
// these. level is the mean gain of tasks, which the trees do not learn.
func Data(samples []Sample, loss Loss) (d *gbdt.Data, level float64, err error) {
	sorted, err := lessons(samples)
	if err != nil {
		return nil, 0, err
	}
	return Options{Loss: loss}.data(nil, sorted)
}

// Train makes a model of the samples, or adds trees to base, which is not changed. What is the same for all samples of
// a task is not learnt, since only the order of its candidates has a meaning, and would be wrong for the next task.
// The result depends on the samples, their order and the options alone. It stops between trees when the context ends.
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

// tasksOf is how many tasks the samples are of.
func tasksOf(samples []Sample) int {
	known := map[string]bool{}
	for _, s := range samples {
		known[s.Task] = true
	}
	return len(known)
}

// train adds trees by one loss.
func train(ctx context.Context, base *Model, samples []Sample, o Options) (*Model, error) {
	sorted, err := lessons(samples)
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

// data is what the trees are trained on. level is what they are to predict beside that: the mean gain of a task.
func (o Options) data(base *Model, sorted []Sample) (d *gbdt.Data, level float64, err error) {
	if len(sorted) == 0 {
		return nil, 0, errNothing
	}
	d = &gbdt.Data{Features: sorted[0].Features.Set.Columns, Groups: groups(sorted)}
	for k, share := range shares(sorted, d.Groups) {
		d.Rows = append(d.Rows, sorted[k].Features.Values...)
		d.Weights = append(d.Weights, float32(o.weight(share)))
	}
	known := make([]float64, len(sorted)) // what is predicted already
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

// order has a loss of pairs see the speeds themselves, and the analytic cost as what is predicted beside the trees.
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

func rowsOf(samples []Sample) []features.Row {
	rows := make([]features.Row, len(samples))
	for k := range samples {
		rows[k] = samples[k].Features
	}
	return rows
}
