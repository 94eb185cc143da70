package costmodel

import (
	"cmp"

	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Loss is what training makes small.
type Loss uint8

const (
	// Mixed is Latency for the first half of the trees, which tells how far apart candidates are, and Order for the
	// others, which tells better which is faster.
	Mixed Loss = iota
	// Latency is the squared error of the latency's logarithm; fast samples count more, by their share of the
	// throughput of the task's best.
	Latency
	// Throughput is the squared error of that share: for small errors that of the latency's logarithm, weighted by the
	// share's square.
	Throughput
	// Order is the logistic loss of the wrong order of two samples of a task, weighted by how far apart their
	// latencies are.
	Order
)

// Options are what training may choose; the zero value suits thousands of samples.
type Options struct {
	// Seed determines what is drawn at random.
	Seed uint64
	// Trees is how many are added; 0 lets For choose.
	Trees int
	// Leaves is the most leaves of a tree; 0 lets For choose.
	Leaves int
	// LearningRate scales each tree; 0 means 0.1.
	LearningRate float64
	Loss         Loss
	// Trust is the share of what was learnt that the added trees say, since what is true of some tasks is only partly
	// true of another. 0 means n/(n+10) for n tasks.
	Trust float64
	// Workers is how many processors are used; 0 means all. The model does not depend on it.
	Workers int
}

const (
	// manyTasks is from how many tasks on a model has twice as many trees, of half the leaves.
	manyTasks = 100
	// Each tree sees a part of the features and of the samples.
	featureFraction, rowFraction = 0.5, 0.8
	// leastShare is the part of all weight that a leaf has at least, and leastWeight what it has at least of few
	// samples.
	leastShare, leastWeight = 0.002, 2
	// leastCurvature is what a leaf has at least of the second derivatives of pairs, which are small.
	leastCurvature = 1e-2
	// apart is by how much, as a logarithm of base 2, two latencies must differ for their order to be learnt,
	// steepness how soon they are far apart, and pairs with how many others each sample is compared for a tree.
	apart, steepness, pairs = 0.02, 6, 16
	// halfTrusted is of how many tasks a half is trusted.
	halfTrusted = 10
)

// For chooses the trees and leaves of a model of so many tasks, where they are not given. Of 223 tasks more trees rank
// others better, 0.880 of pairs in place of 0.878; what more trees learn of 26 does not hold for others: the best
// guess has 82 to 84 % of the best speed in place of 87.
func (o Options) For(tasks int) Options {
	trees, leaves := 100, 63
	if tasks >= manyTasks {
		trees, leaves = 200, 31
	}
	o.Trees, o.Leaves = cmp.Or(o.Trees, trees), cmp.Or(o.Leaves, leaves)
	return o
}

// trust is the share of what so many tasks taught that counts.
func (o Options) trust(tasks int) float64 {
	if o.Trust > 0 {
		return o.Trust
	}
	return float64(tasks) / float64(tasks+halfTrusted)
}

// weight is how much a sample counts that has a share of its task's best throughput.
func (o Options) weight(share float64) float64 {
	if o.Loss == Throughput {
		share *= share
	}
	return max(share, 1e-6) // none counts for nothing
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
		p.MinWeight = leastCurvature
		return p
	}
	weight := 0.0
	for _, w := range d.Weights {
		weight += float64(w)
	}
	p.MinWeight = max(leastShare*weight, leastWeight)
	return p
}
