package costmodel

import (
	"cmp"

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
