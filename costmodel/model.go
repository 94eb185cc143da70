package costmodel

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel/gbdt"
	"github.com/tilth-dev/tilth/internal/filesystem"
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

// Path returns the path in a folder of the model of a target, given by its fingerprint. The file contains LightGBM
// text. Its name includes the feature set, so that versions of the program with other features do not read it.
func Path(dir, fingerprint string, set *costfeatures.Set) (string, error) {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+", r))
	}
	if fingerprint == "" || fingerprint[0] == '.' || strings.ContainsFunc(fingerprint, odd) {
		return "", fmt.Errorf("cost model: %q is not a target's fingerprint", fingerprint)
	}
	return filepath.Join(dir, fingerprint+"."+set.Name+".txt"), nil
}

// Load reads the model of a target. It returns fs.ErrNotExist if there is no model.
func Load(dir, fingerprint string, set *costfeatures.Set) (*Model, error) {
	path, err := Path(dir, fingerprint, set)
	if err != nil {
		return nil, err
	}
	return ReadFile(path, set)
}

// ReadFile reads a model file for one of the feature sets. The error names the file.
func ReadFile(path string, sets ...*costfeatures.Set) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	defer f.Close()
	m, err := Read(f, sets...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Save stores the model of a target and replaces the previous one. It creates the folder if necessary.
func (m *Model) Save(dir, fingerprint string) error {
	path, err := Path(dir, fingerprint, m.set)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cost model: %w", err)
	}
	return filesystem.WriteFile(path, func(w io.Writer) error { return m.Write(w) })
}

// read caches the parsed models by their texts, because parsing takes longer than any prediction.
var (
	mu   sync.Mutex // guards read
	read = map[string]*Model{}
)

// PriorFor returns the model for a target, or nil if its backend does not have one.
func PriorFor(t *target.Target) (*Model, error) {
	b, err := registry.Of(t)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	text := b.Features().Prior(t)
	if text == "" {
		return nil, nil
	}
	mu.Lock()
	defer mu.Unlock()
	if read[text] == nil {
		m, err := Read(strings.NewReader(text), b.Features().Set())
		if err != nil {
			return nil, fmt.Errorf("the model of backend %s: %w", b.Name(), err)
		}
		read[text] = m
	}
	return read[text], nil
}

// Sample is a measured candidate.
type Sample struct {
	// Features includes the analytic cost. All samples of a model have the same feature set.
	Features costfeatures.Row
	// Task names the group of candidates to compare, such as the workload's digest.
	Task string
	// LatencySeconds is the latency; 0 for a failed candidate, which is ignored.
	LatencySeconds float64
}

// Speed returns the base-2 logarithm of the executions per nanosecond.
func (s *Sample) Speed() float64 { return -math.Log2(s.LatencySeconds * 1e9) }

// Gain returns the label of a sample: the base-2 logarithm of the analytic cost's cycles per nanosecond of
// the latency. Within a task, candidates of equal gain are ordered by their costs.
func (s *Sample) Gain() float64 {
	cost, _ := s.Features.Cost()
	return cost + s.Speed()
}

// usableSamples returns the usable samples, ordered by task name: those with a latency and an analytic cost.
func usableSamples(samples []Sample) ([]Sample, error) {
	list := make([]Sample, 0, len(samples))
	for _, s := range samples {
		if set := samples[0].Features.Set; s.Features.Set != set || !s.Features.Whole() {
			return nil, fmt.Errorf("cost model: a sample of task %s has %d features of %s, not all of %s", s.Task, len(s.Features.Values),
				setName(s.Features.Set), setName(set))
		}
		if _, known := s.Features.Cost(); known && s.LatencySeconds > 0 && !math.IsInf(s.LatencySeconds, 0) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Sample) int { return strings.Compare(a.Task, b.Task) })
	return list, nil
}

// groups returns the number of consecutive samples of each task.
func groups(sorted []Sample) (sizes []int) {
	for k, s := range sorted {
		if k == 0 || s.Task != sorted[k-1].Task {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

// shares returns the throughput of each sample relative to the best of its task.
func shares(sorted []Sample, sizes []int) []float64 {
	list := make([]float64, 0, len(sorted))
	for _, n := range sizes {
		own := sorted[len(list):][:n]
		best := slices.MinFunc(own, func(a, b Sample) int { return cmp.Compare(a.LatencySeconds, b.LatencySeconds) }).LatencySeconds
		for _, s := range own {
			list = append(list, best/s.LatencySeconds)
		}
	}
	return list
}
