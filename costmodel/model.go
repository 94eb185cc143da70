package costmodel

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/costmodel/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Model ranks candidates. It may be used by several goroutines at a time.
type Model struct {
	trees     *gbdt.Model
	predictor *gbdt.Predictor
}

func newModel(trees *gbdt.Model) (*Model, error) {
	p, err := gbdt.NewPredictor(trees)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	return &Model{trees: trees, predictor: p}, nil
}

// Trees is how many trees the model has.
func (m *Model) Trees() int { return len(m.trees.Trees) }

// Predict sets the score of each row of features; higher is faster. Scores of one task's candidates can be compared; of a model that was
// trained with the Throughput loss they estimate the share of the throughput of the task's best candidate. A row that is not of the
// set's length has the worst score, -Inf. There are as many scores as rows.
func (m *Model) Predict(rows [][]float32, scores []float64) {
	n := len(m.trees.Features)
	flat := make([]float32, 0, n*len(rows))
	for _, r := range rows {
		if len(r) == n {
			flat = append(flat, r...)
		} else {
			flat = append(flat, make([]float32, n)...)
		}
	}
	predicted, err := m.predictor.Predict(flat)
	for i, r := range rows {
		scores[i] = math.Inf(-1)
		if err == nil && len(r) == n {
			scores[i] = predicted[i]
		}
	}
}

// Write writes the model as LightGBM's text, version 3.
func (m *Model) Write(w io.Writer) error { return m.trees.Write(w) }

// Read reads a model that Write or LightGBM wrote. It must be one of the features of features.Set.
func Read(r io.Reader) (*Model, error) {
	trees, err := gbdt.Read(r)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	if err := checkFeatures(trees.Features); err != nil {
		return nil, err
	}
	return newModel(trees)
}

// checkFeatures tells how a model's features differ from the set's.
func checkFeatures(names []string) error {
	want := features.Names()
	if slices.Equal(names, want) {
		return nil
	}
	for k := range min(len(names), len(want)) {
		if names[k] != want[k] {
			return fmt.Errorf("cost model: feature %d is %q, not %q of %s: train it with those of docs/features.md, or remove it and a new one is trained",
				k, names[k], want[k], features.Set)
		}
	}
	return fmt.Errorf("cost model: it has %d features, not the %d of %s: train it with those of docs/features.md, or remove it and a new one is trained",
		len(names), len(want), features.Set)
}
