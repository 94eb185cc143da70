package knowledge

import (
	"context"
	"math"

	"github.com/tilth-dev/tilth/costmodel/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// sample is a row and what it took.
type sample struct {
	Row
	latency float64
}

// model predicts by how much a schedule is faster than its analytic cost says: the logarithm, base 2, of cycles for a nanosecond. It
// begins as the analytic cost alone, and goes away from it as far as samples say.
type model struct {
	trees     *gbdt.Model
	predictor *gbdt.Predictor
}

// baseParams train on what was measured before; jobParams add a job's own trials.
func baseParams(seed uint64) gbdt.Params {
	p := gbdt.DefaultParams()
	p.Trees, p.Leaves, p.FeatureFraction, p.RowFraction, p.MinWeight, p.Seed = 120, 31, 0.5, 0.8, 4, seed
	return p
}

func jobParams(seed uint64, samples int) gbdt.Params {
	p := gbdt.DefaultParams()
	p.Trees, p.Leaves, p.FeatureFraction, p.RowFraction, p.Seed = 40, 15, 0.5, 0.8, seed
	p.MinWeight = 2
	return p
}

// train adds trees to a model, or makes one from nothing.
func train(from *model, samples []sample, p gbdt.Params) (*model, error) {
	d := &gbdt.Data{Features: features.Names()}
	for _, s := range samples {
		d.Rows = append(d.Rows, s.features...)
		d.Labels = append(d.Labels, float32(s.label()))
	}
	var trees *gbdt.Model
	if from != nil {
		trees = from.trees
	}
	trees, err := gbdt.Train(context.Background(), d, gbdt.Squared{}, p, trees)
	if err != nil {
		return nil, err
	}
	predictor, err := gbdt.NewPredictor(trees)
	if err != nil {
		return nil, err
	}
	return &model{trees, predictor}, nil
}

// label is what the model learns of a sample.
func (s sample) label() float64 { return math.Log2(max(s.cycles, 1) / (s.latency * 1e9)) }

// times predicts the logarithm, base 2, of the nanoseconds that rows take; a nil model says the analytic cost.
func (m *model) times(rows []Row) ([]float64, error) {
	list := make([]float64, len(rows))
	for k, r := range rows {
		list[k] = math.Log2(max(r.cycles, 1))
	}
	if m == nil || len(rows) == 0 {
		return list, nil
	}
	var flat []float32
	for _, r := range rows {
		flat = append(flat, r.features...)
	}
	gains, err := m.predictor.Predict(flat)
	for k, g := range gains {
		list[k] -= g
	}
	return list, err
}

// Costs are what an empty model says.
func Costs(rows []Row) []float64 {
	list, _ := (*model)(nil).times(rows)
	return list
}
