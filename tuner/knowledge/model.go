package knowledge

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/costmodel/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// sample is a row and what it took.
type sample struct {
	Row
	// task numbers what samples are compared within.
	task    int
	latency float64
}

// model predicts by how much a schedule is faster than its analytic cost says, as a logarithm, base 2. It begins as the analytic cost
// alone, and goes away from it as far as samples say. What is the same for a whole task is not learnt, since only
// the order of its candidates has a meaning, and would be wrong for the next task.
type model struct {
	trees     *gbdt.Model
	predictor *gbdt.Predictor
	// speed is the mean of the tasks' logarithms, base 2, of analytic cycles for a nanosecond.
	speed float64
}

const (
	// baseTrees are learnt from what was measured before a job, and jobTrees added for its own trials. The first are held back more: what
	// is true of one task is half as true of another.
	baseTrees, jobTrees = 60, 40
	baseTrust           = 0.5
	// leastShare is the part of all weight that a leaf has at least, and leastWeight what it has at least of few samples.
	leastShare, leastWeight = 0.01, 2
)

func baseParams() gbdt.Params {
	p := gbdt.DefaultParams()
	p.Trees, p.FeatureFraction, p.RowFraction, p.Seed = baseTrees, 0.5, 0.8, 1
	return p
}

func jobParams(samples int) gbdt.Params {
	p := gbdt.DefaultParams()
	p.Trees, p.Leaves, p.FeatureFraction, p.RowFraction, p.Seed = jobTrees, 15, 0.5, 0.8, uint64(samples)
	return p
}

// train adds trees to a model, or makes one from nothing.
func train(from *model, samples []sample, p gbdt.Params) (*model, error) {
	d := &gbdt.Data{Features: features.Names()}
	own, weight := tally(samples), 0.0
	for _, s := range samples {
		d.Rows = append(d.Rows, s.features...)
		d.Labels = append(d.Labels, float32(s.label()-own[s.task].mean()))
		d.Weights = append(d.Weights, float32(math.Sqrt(own[s.task].best/s.latency)))
		weight += math.Sqrt(own[s.task].best / s.latency)
	}
	p.MinWeight = max(leastShare*weight, leastWeight)
	m := &model{speed: speed(own)}
	var trees *gbdt.Model
	if from != nil {
		trees, m.speed = from.trees, from.speed
	}
	var err error
	if m.trees, err = gbdt.Train(context.Background(), d, gbdt.Squared{}, p, trees); err != nil {
		return nil, err
	}
	m.predictor, err = gbdt.NewPredictor(m.trees)
	return m, err
}

// heldBack is a model whose trees say a part of what they said.
func (m *model) heldBack(part float64) (*model, error) {
	less := &model{trees: &gbdt.Model{}, speed: m.speed}
	*less.trees = *m.trees
	less.trees.Trees = slices.Clone(m.trees.Trees)
	for k, t := range less.trees.Trees {
		t.Leaves = slices.Clone(t.Leaves)
		for i := range t.Leaves {
			t.Leaves[i].Value *= part
		}
		less.trees.Trees[k] = t
	}
	var err error
	less.predictor, err = gbdt.NewPredictor(less.trees)
	return less, err
}

// label is what the model learns of a sample, but for its task's mean.
func (s sample) label() float64 { return math.Log2(max(s.cycles, 1) / (s.latency * 1e9)) }

// sums are of one task's samples.
type sums struct{ best, labels, n float64 }

func (s sums) mean() float64 { return s.labels / s.n }

func tally(samples []sample) map[int]sums {
	own := map[int]sums{}
	for _, s := range samples {
		t := own[s.task]
		if t.n == 0 || s.latency < t.best {
			t.best = s.latency
		}
		t.labels += s.label()
		t.n++
		own[s.task] = t
	}
	return own
}

// speed is the mean over tasks, in the order of their numbers.
func speed(own map[int]sums) (mean float64) {
	for _, k := range slices.Sorted(maps.Keys(own)) {
		mean += own[k].mean() / float64(len(own))
	}
	return mean
}

// times predicts the logarithm, base 2, of the nanoseconds that rows take, right but for a constant of their task; a nil model says the
// analytic cost.
func (m *model) times(rows []Row) ([]float64, error) {
	list := Costs(rows)
	if m == nil || len(rows) == 0 {
		return list, nil
	}
	var flat []float32
	for _, r := range rows {
		flat = append(flat, r.features...)
	}
	gains, err := m.predictor.Predict(flat)
	for k, g := range gains {
		list[k] -= g + m.speed
	}
	return list, err
}

// Costs are the logarithms, base 2, of the analytic costs of rows.
func Costs(rows []Row) []float64 {
	list := make([]float64, len(rows))
	for k, r := range rows {
		list[k] = math.Log2(max(r.cycles, 1))
	}
	return list
}
