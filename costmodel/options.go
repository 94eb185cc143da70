package costmodel

import (
	"math"

	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Loss is what training makes small.
type Loss uint8

const (
	// Latency is the squared error of the latency's logarithm; fast samples count more, by the root of their share of the throughput of
	// the task's best.
	Latency Loss = iota
	// Throughput is the squared error of that share: for small errors that of the latency's logarithm, weighted by the share's square.
	Throughput
	// Order is the logistic loss of the wrong order of two samples of a task, weighted by how far apart their latencies are.
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
	// Trust is the share of what was learnt that the added trees say, since what is true of one task is only partly true of another; 0 means 1.
	Trust float64
	// Workers is how many processors are used; 0 means all. The model does not depend on it.
	Workers int
}

// ForOthers are the options of a model that is asked about tasks that it was not trained on: what is true of one task is half as true of
// another.
func ForOthers() Options { return Options{Trees: 60, Leaves: 31, LearningRate: 0.1, Trust: 0.5, Seed: 1} }

const (
	// Each tree sees a part of the features and of the samples.
	featureFraction, rowFraction = 0.5, 0.8
	// leastShare is the part of all weight that a leaf has at least, and leastWeight what it has at least of few samples.
	leastShare, leastWeight = 0.01, 2
	// leastCurvature is what a leaf has at least of the second derivatives of pairs, which are small.
	leastCurvature = 1e-2
	// apart is by how much, as a logarithm of base 2, two latencies must differ for their order to be learnt.
	apart = 0.02
)

// weight is how much a sample counts that has a share of its task's best throughput.
func (o Options) weight(share float64) float64 {
	if o.Loss == Throughput {
		return max(share*share, 1e-6) // no sample counts for nothing
	}
	return max(math.Sqrt(share), 1e-6)
}

func (o Options) loss() gbdt.Loss {
	if o.Loss == Order {
		return gbdt.Rank{Apart: apart}
	}
	return gbdt.Squared{}
}

func (o Options) params(d *gbdt.Data) gbdt.Params {
	p := gbdt.DefaultParams()
	p.Seed, p.Workers, p.FeatureFraction, p.RowFraction = o.Seed, o.Workers, featureFraction, rowFraction
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
