package costmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

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
