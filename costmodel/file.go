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
	"github.com/tilth-dev/tilth/internal/filesystem"
)

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
