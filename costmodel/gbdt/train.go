package gbdt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Loss is a loss function, given by its derivatives with respect to each prediction.
type Loss interface {
	// Name returns the name of the loss in LightGBM text.
	Name() string
	// Start returns the constant prediction of an empty model.
	Start(d *Data) float64
	// Derivatives sets the first and second derivatives of the loss at the predictions. Random numbers come from rng.
	Derivatives(d *Data, predictions, first, second []float64, rng *rand.Rand)
}

// Squared is half the squared error.
type Squared struct{}

// Name implements Loss.
func (Squared) Name() string { return "regression" }

// Start returns the weighted mean of the labels minus the offsets.
func (Squared) Start(d *Data) float64 {
	sum, weights := 0.0, 0.0
	for i, y := range d.Labels {
		sum += d.weight(i) * (float64(y) - d.offset(i))
		weights += d.weight(i)
	}
	return sum / weights
}

// Derivatives implements Loss.
func (Squared) Derivatives(d *Data, predictions, first, second []float64, _ *rand.Rand) {
	for i, y := range d.Labels {
		w := d.weight(i)
		first[i], second[i] = w*(predictions[i]-float64(y)), w
	}
}

// Rank is the logistic loss of pairs of rows in a group: log(1 + exp(better - worse)) of their predictions, weighted
// by the distance of their labels and by the rows' weights. Only the order of predictions within a group matters.
type Rank struct {
	// Pairs is the number of rows that each row is compared with in a round, drawn anew each time; 0 means 8.
	Pairs int
	// Apart is the minimum distance of two labels for their order to count. Smaller distances may be noise.
	Apart float64
	// Steepness (LightGBM's sigmoid) scales predictions. Pairs whose predictions differ by several times its
	// inverse count as correctly ordered. 0 means 1.
	Steepness float64
}

// Name returns the name of a regression, because predictions are not transformed.
func (Rank) Name() string { return "regression" }

// Start implements Loss.
func (Rank) Start(*Data) float64 { return 0 }

// Derivatives compares each row with random others of its group.
func (l Rank) Derivatives(d *Data, predictions, first, second []float64, rng *rand.Rand) {
	clear(first)
	clear(second)
	pairs := l.Pairs
	if pairs <= 0 {
		pairs = 8
	}
	groups := d.Groups
	if groups == nil {
		groups = []int{d.NumRows()}
	}
	begin := 0
	for _, n := range groups {
		for i := begin; n > 1 && i < begin+n; i++ {
			for range pairs {
				if j := begin + rng.IntN(n); j != i {
					l.pull(d, predictions, first, second, i, j)
				}
			}
		}
		begin += n
	}
}

// pull adds the derivatives of one pair.
func (l Rank) pull(d *Data, predictions, first, second []float64, i, j int) {
	if d.Labels[i] < d.Labels[j] {
		i, j = j, i
	}
	apart := float64(d.Labels[i]) - float64(d.Labels[j])
	if apart == 0 || apart < l.Apart {
		return
	}
	weight := apart * math.Sqrt(d.weight(i)*d.weight(j))
	steepness := cmp.Or(l.Steepness, 1)
	wrong := 1 / (1 + math.Exp(steepness*(predictions[i]-predictions[j]))) // probability of the wrong order
	first[i] -= steepness * weight * wrong
	first[j] += steepness * weight * wrong
	curvature := steepness * steepness * weight * wrong * (1 - wrong)
	second[i] += curvature
	second[j] += curvature
}

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
