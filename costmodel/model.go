package costmodel

import (
	"fmt"
	"io"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/features"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Model ranks candidates. A nil model is the analytic cost alone. It may be used by several goroutines at a time.
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
func (m *Model) Trees() int {
	if m == nil {
		return 0
	}
	return len(m.trees.Trees)
}

// Digest names what the model was trained on; empty where WithDigest was not told, and for models that other programs
// wrote.
func (m *Model) Digest() string { return m.trees.Digest }

// WithDigest is the same model, which says what it was trained on, also when it is read again.
func (m *Model) WithDigest(digest string) *Model {
	trees := *m.trees
	trees.Digest = digest
	return &Model{trees: &trees, predictor: m.predictor}
}

// Times predicts the logarithm, base 2, of the nanoseconds that candidates take, of tasks that nothing is known of
// right but for a constant. Each row is the features of one. The error says that rows are not of features.Set.
func (m *Model) Times(rows [][]float32) ([]float64, error) {
	times := make([]float64, len(rows))
	for k, r := range rows {
		cost, _ := features.Cost(r)
		times[k] = cost
	}
	if m == nil || len(rows) == 0 {
		return times, nil
	}
	gains, err := m.gains(rows)
	for k, g := range gains {
		times[k] -= g
	}
	return times, err
}

// gains are what the trees predict.
func (m *Model) gains(rows [][]float32) ([]float64, error) {
	n := len(m.trees.Features)
	flat := make([]float32, 0, n*len(rows))
	for _, r := range rows {
		if len(r) != n {
			return nil, fmt.Errorf("cost model: a row has %d features, not the %d of %s", len(r), n, features.Set)
		}
		flat = append(flat, r...)
	}
	gains, err := m.predictor.Predict(flat)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	return gains, nil
}

// Write writes the model as LightGBM's text, version 3.
func (m *Model) Write(w io.Writer) error { return m.trees.Write(w) }

// Read reads a model that Write or LightGBM wrote. It must be one of the features of features.Set, and predict gains.
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
