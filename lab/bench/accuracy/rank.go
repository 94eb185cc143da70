package accuracy

import (
	"context"

	"github.com/tilth-dev/tilth/costmodel"
)

// Ranker is a method of ranking candidates.
type Ranker interface {
	// Name returns a short name for tables.
	Name() string
	// Rank trains on some tasks and scores the candidates of others. Scores are base-2 logarithms of throughputs, up
	// to a constant per task.
	Rank(ctx context.Context, train, test []Task) ([][]float64, error)
}

// Learnt is the project's own model.
type Learnt struct {
	Label   string
	Options costmodel.Options
}

// Name returns the label.
func (l Learnt) Name() string { return l.Label }

// Rank trains a model.
func (l Learnt) Rank(ctx context.Context, train, test []Task) ([][]float64, error) {
	m, err := costmodel.Train(ctx, nil, Samples(train), l.Options)
	if err != nil {
		return nil, err
	}
	return speeds(m, test)
}

// Samples returns the samples of all tasks.
func Samples(tasks []Task) (list []costmodel.Sample) {
	for _, t := range tasks {
		list = append(list, t.Samples...)
	}
	return list
}

// Analytic is the analytic cost of the space. It does not train.
type Analytic struct{}

// Name returns the ranker's name.
func (Analytic) Name() string { return "analytic" }

// Rank ranks fewer cycles first.
func (Analytic) Rank(_ context.Context, _, test []Task) ([][]float64, error) {
	return speeds(nil, test)
}

// speeds returns a model's predictions for the candidates of tasks.
func speeds(m *costmodel.Model, tasks []Task) ([][]float64, error) {
	scores := make([][]float64, len(tasks))
	for k := range tasks {
		times, err := m.Times(tasks[k].rows())
		if err != nil {
			return nil, err
		}
		for _, t := range times {
			scores[k] = append(scores[k], -t)
		}
	}
	return scores, nil
}
