package gbdt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Train adds trees that lower the loss on the data to a copy of a model, or to a new one if from is nil. It
// checks ctx between trees.
func Train(ctx context.Context, d *Data, loss Loss, p Params, from *Model) (*Model, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	m := &Model{Features: slices.Clone(d.Features), Ranges: ranges(d), Objective: loss.Name()}
	start := 0.0
	if from == nil {
		start = loss.Start(d)
	} else if !slices.Equal(from.Features, d.Features) {
		return nil, fmt.Errorf("gbdt: the features of the model to continue (%d) differ from those of the data (%d): train a new model",
			len(from.Features), len(d.Features))
	} else {
		m.Trees = slices.Clone(from.Trees)
		for f, r := range from.Ranges[:min(len(m.Ranges), len(from.Ranges))] {
			m.Ranges[f] = [2]float64{min(m.Ranges[f][0], r[0]), max(m.Ranges[f][1], r[1])}
		}
	}
	predictions := make([]float64, d.NumRows())
	parallel(p.workers(), len(predictions), func(i int) { predictions[i] = d.offset(i) + start + m.predict(d.row(i)) })
	b := &booster{data: d, loss: loss, params: &p, predictions: predictions, grower: newGrower(bin(d, p.workers()), &p)}
	for range p.Trees {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		t := b.round(uint64(len(m.Trees)))
		t.add(start) // the first tree includes the constant prediction of an empty model
		start = 0
		m.Trees = append(m.Trees, t)
	}
	return m, nil
}

// booster is the state of training between rounds.
type booster struct {
	data        *Data
	loss        Loss
	params      *Params
	predictions []float64
	grower      *grower
	first       []float64
	second      []float64
}

// round grows one tree and adds it to the predictions. Random draws depend on the seed and the number of
// earlier trees.
func (b *booster) round(trees uint64) Tree {
	rng := rand.New(rand.NewPCG(b.params.Seed, trees))
	rows := b.data.NumRows()
	if b.first == nil {
		b.first, b.second = make([]float64, rows), make([]float64, rows)
	}
	b.loss.Derivatives(b.data, b.predictions, b.first, b.second, rng)
	in, out := draw(rng, rows, b.params.RowFraction)
	features, _ := draw(rng, len(b.data.Features), b.params.FeatureFraction)
	list := make([]int, len(features))
	for i, f := range features {
		list[i] = int(f)
	}
	t, leaves := b.grower.grow(in, list, b.first, b.second)
	for i, l := range leaves {
		for _, r := range b.grower.rows[l.begin:l.end] {
			b.predictions[r] += t.Leaves[i].Value
		}
	}
	for _, r := range out {
		b.predictions[r] += t.Leaves[t.leaf(b.data.row(int(r)))].Value
	}
	return t
}

// draw selects a share of 0 to n-1, at least one. Both results are sorted.
func draw(rng *rand.Rand, n int, share float64) (in, out []int32) {
	want := max(1, int(share*float64(n)+0.5))
	in = make([]int32, 0, want)
	for i := range n {
		if rng.IntN(n-i) < want-len(in) {
			in = append(in, int32(i))
		} else {
			out = append(out, int32(i))
		}
	}
	return in, out
}

// add adds a constant to every value of a tree.
func (t *Tree) add(constant float64) {
	for i := range t.Leaves {
		t.Leaves[i].Value += constant
	}
	for i := range t.Nodes {
		t.Nodes[i].Value += constant
	}
}

// ranges returns the minimum and maximum of each feature.
func ranges(d *Data) [][2]float64 {
	list := make([][2]float64, len(d.Features))
	for i := range d.NumRows() {
		for f, v := range d.row(i) {
			if i == 0 {
				list[f] = [2]float64{float64(v), float64(v)}
			}
			list[f][0], list[f][1] = min(list[f][0], float64(v)), max(list[f][1], float64(v))
		}
	}
	return list
}

// shares is the number of parts per worker that work is divided into, for load balance.
const shares = 8

// parallel calls do(0) to do(n-1) concurrently. Calls must write to disjoint memory, so that their order does
// not matter.
func parallel(workers, n int, do func(i int)) {
	part := max(1, n/(workers*shares))
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(int64(part)))
			if end-part >= n {
				return
			}
			for i := end - part; i < min(end, n); i++ {
				do(i)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(workers, n) - 1 {
		wg.Go(work)
	}
	work() // the caller takes part while the goroutines start
	wg.Wait()
}

// Params configures training.
type Params struct {
	// Trees is the number of trees to add.
	Trees int
	// Leaves is the maximum number of leaves per tree.
	Leaves int
	// LearningRate scales each tree.
	LearningRate float64
	// MinWeight is the minimum sum of second derivatives in a leaf; for the squared error, the minimum number of rows.
	MinWeight float64
	// L2 is added to the sum of second derivatives of a leaf, which shrinks its value.
	L2 float64
	// RowFraction and FeatureFraction are the shares of rows and features that each tree sees, in (0, 1].
	RowFraction, FeatureFraction float64
	// Seed determines all random draws.
	Seed uint64
	// Workers is the number of processors to use; 0 means all. It does not affect the model.
	Workers int
}

// DefaultParams returns parameters for thousands of rows with hundreds of features.
func DefaultParams() Params {
	return Params{Trees: 100, Leaves: 31, LearningRate: 0.1, MinWeight: 1, L2: 1, RowFraction: 1, FeatureFraction: 1}
}

func (p Params) check() error {
	switch {
	case p.Trees < 0:
		return fmt.Errorf("gbdt: %d trees: give 0 or more", p.Trees)
	case p.Leaves < 2:
		return fmt.Errorf("gbdt: %d leaves a tree: give 2 or more", p.Leaves)
	case !(p.LearningRate > 0):
		return fmt.Errorf("gbdt: learning rate %v: give more than 0", p.LearningRate)
	case !(p.MinWeight > 0):
		return fmt.Errorf("gbdt: least weight of a leaf %v: give more than 0", p.MinWeight)
	case !(p.L2 >= 0):
		return fmt.Errorf("gbdt: L2 regularization %v: give 0 or more", p.L2)
	case !(p.RowFraction > 0 && p.RowFraction <= 1):
		return fmt.Errorf("gbdt: share of rows %v: give more than 0 and at most 1", p.RowFraction)
	case !(p.FeatureFraction > 0 && p.FeatureFraction <= 1):
		return fmt.Errorf("gbdt: share of features %v: give more than 0 and at most 1", p.FeatureFraction)
	case p.Workers < 0:
		return fmt.Errorf("gbdt: %d workers: give 0 (all processors) or more", p.Workers)
	}
	return nil
}

func (p Params) workers() int {
	if p.Workers > 0 {
		return p.Workers
	}
	return runtime.GOMAXPROCS(0)
}
