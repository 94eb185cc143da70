package accuracy

import (
	"context"
	"math"

	"github.com/tilth-dev/tilth/costmodel"
)

// Ranker is a way to rank candidates.
type Ranker interface {
	// Name is a short name for tables.
	Name() string
	// Rank learns from some tasks and scores the candidates of others; higher is faster.
	Rank(ctx context.Context, train, test []Task) ([][]float64, error)
}

// Learnt is this project's own model.
type Learnt struct {
	Label   string
	Options costmodel.Options
}

// Name is the label.
func (l Learnt) Name() string { return l.Label }

// Rank trains a model.
func (l Learnt) Rank(ctx context.Context, train, test []Task) ([][]float64, error) {
	var samples []costmodel.Sample
	for _, t := range train {
		samples = append(samples, t.Samples...)
	}
	m, err := costmodel.Train(ctx, nil, samples, l.Options)
	if err != nil {
		return nil, err
	}
	scores := make([][]float64, len(test))
	for k := range test {
		scores[k] = make([]float64, len(test[k].Samples))
		m.Predict(test[k].rows(), scores[k])
	}
	return scores, nil
}

// Analytic is the space's analytic cost, which learns nothing.
type Analytic struct{}

// Name says what it is.
func (Analytic) Name() string { return "analytic" }

// Rank puts fewer cycles first, and unknown ones last.
func (Analytic) Rank(_ context.Context, _, test []Task) ([][]float64, error) {
	scores := make([][]float64, len(test))
	for k, t := range test {
		for _, c := range t.Cycles {
			if math.IsNaN(c) {
				c = math.Inf(1)
			}
			scores[k] = append(scores[k], -c)
		}
	}
	return scores, nil
}
