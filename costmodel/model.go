package costmodel

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
)

// Model ranks candidates. A nil model is the analytic cost alone. It is safe for concurrent use.
type Model struct {
	set       *costfeatures.Set
	trees     *gbdt.Model
	predictor *gbdt.Predictor
}

func newModel(set *costfeatures.Set, trees *gbdt.Model) (*Model, error) {
	p, err := gbdt.NewPredictor(trees)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	return &Model{set: set, trees: trees, predictor: p}, nil
}

// Trees returns the number of trees.
func (m *Model) Trees() int {
	if m == nil {
		return 0
	}
	return len(m.trees.Trees)
}

// Digest identifies the training data. It is empty without WithDigest and for models of other programs.
func (m *Model) Digest() string { return m.trees.Digest }

// WithDigest returns a copy of the model with a digest of its training data, which Write stores.
func (m *Model) WithDigest(digest string) *Model {
	trees := *m.trees
	trees.Digest = digest
	return &Model{set: m.set, trees: &trees, predictor: m.predictor}
}

// Times predicts the base-2 logarithm of the candidates' nanoseconds. For unknown tasks it is correct up to a
// constant. Each row describes one candidate. It returns an error if the rows have other features.
func (m *Model) Times(rows []costfeatures.Row) ([]float64, error) {
	times := make([]float64, len(rows))
	for k, r := range rows {
		cost, _ := r.Cost()
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

// gains returns the predictions of the trees.
func (m *Model) gains(rows []costfeatures.Row) ([]float64, error) {
	n := len(m.trees.Features)
	flat := make([]float32, 0, n*len(rows))
	for _, r := range rows {
		if r.Set != m.set || !r.Whole() {
			return nil, fmt.Errorf("cost model: a row has %d features of %s, not the %d of %s", len(r.Values), setName(r.Set), n, m.set.Name)
		}
		flat = append(flat, r.Values...)
	}
	gains, err := m.predictor.Predict(flat)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	return gains, nil
}

// Write writes the model as LightGBM text, version 3.
func (m *Model) Write(w io.Writer) error { return m.trees.Write(w) }

// Set returns the feature set of the model.
func (m *Model) Set() *costfeatures.Set { return m.set }

func setName(set *costfeatures.Set) string {
	if set == nil {
		return "no set"
	}
	return set.Name
}

// Read reads a model written by Write or LightGBM. It must predict gains from a known feature set.
func Read(r io.Reader, sets ...*costfeatures.Set) (*Model, error) {
	trees, err := gbdt.Read(r)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	for _, set := range sets {
		if slices.Equal(trees.Features, set.Columns) {
			return newModel(set, trees)
		}
	}
	return nil, different(trees.Features, nearest(trees.Features, sets))
}

// nearest returns the set with the most columns in common with a model.
func nearest(names []string, sets []*costfeatures.Set) *costfeatures.Set {
	common := func(set *costfeatures.Set) (n int) {
		for k := range min(len(names), len(set.Columns)) {
			if names[k] == set.Columns[k] {
				n++
			}
		}
		return n
	}
	return slices.MaxFunc(sets, func(a, b *costfeatures.Set) int { return cmp.Compare(common(a), common(b)) })
}

// different describes the difference between a model's features and a set.
func different(names []string, set *costfeatures.Set) error {
	for k := range min(len(names), len(set.Columns)) {
		if names[k] != set.Columns[k] {
			return fmt.Errorf("cost model: feature %d is %q, not %q of %s: train it with those of docs/features.md, or remove it and a new one is trained",
				k, names[k], set.Columns[k], set.Name)
		}
	}
	return fmt.Errorf("cost model: it has %d features, not the %d of %s: train it with those of docs/features.md, or remove it and a new one is trained",
		len(names), len(set.Columns), set.Name)
}
