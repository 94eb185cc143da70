package costmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/costmodel/features"
)

// made are samples of several tasks whose latency depends on two features, on a scale of each task's own; every tenth failed.
func made(tasks, each int, seed uint64) []Sample {
	rng := rand.New(rand.NewPCG(seed, 0))
	var list []Sample
	for task := range tasks {
		for k := range each {
			s := Sample{Features: make([]float32, len(features.Names())), Task: fmt.Sprint("task", task)}
			for f := range s.Features {
				s.Features[f] = rng.Float32()
			}
			s.LatencySeconds = float64(1+task) * (0.1 + float64(s.Features[3]) + float64(s.Features[7]*s.Features[7]))
			if k%10 == 9 {
				s.LatencySeconds, s.Features[5] = 0, 2
			}
			list = append(list, s)
		}
	}
	return list
}

func rowsOf(samples []Sample) [][]float32 {
	rows := make([][]float32, len(samples))
	for k, s := range samples {
		rows[k] = s.Features
	}
	return rows
}

func trained(t testing.TB, base *Model, samples []Sample, o Options) *Model {
	t.Helper()
	m, err := Train(context.Background(), base, samples, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func textOf(t testing.TB, m *Model) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFasterCandidatesScoreHigher, of tasks that the model was not trained on, and failures lowest.
func TestFasterCandidatesScoreHigher(t *testing.T) {
	for _, loss := range []Loss{Throughput, Order} {
		m := trained(t, nil, made(8, 200, 1), Options{Loss: loss})
		held := made(2, 100, 2)
		scores := make([]float64, len(held))
		m.Predict(rowsOf(held), scores)
		right, pairs := 0, 0
		for i, a := range held {
			for j, b := range held[:i] {
				if a.Task != b.Task {
					continue
				}
				pairs++
				slower := a.LatencySeconds == 0 || b.LatencySeconds != 0 && a.LatencySeconds > b.LatencySeconds
				if a.LatencySeconds == b.LatencySeconds || slower == (scores[i] < scores[j]) {
					right++
				}
			}
		}
		if share := float64(right) / float64(pairs); share < 0.9 {
			t.Errorf("loss %d: only %.3f of the pairs are in order", loss, share)
		}
	}
}

// TestTheModelIsOfTheSamplesAlone: not of the processors, nor of how tasks are mixed.
func TestTheModelIsOfTheSamplesAlone(t *testing.T) {
	samples := made(3, 50, 1)
	var mixed []Sample
	for k := range 50 {
		mixed = append(mixed, samples[k], samples[50+k], samples[100+k])
	}
	want := textOf(t, trained(t, nil, samples, Options{Trees: 5, Loss: Order, Workers: 1}))
	if textOf(t, trained(t, nil, mixed, Options{Trees: 5, Loss: Order, Workers: 4})) != want {
		t.Error("mixed tasks make another model")
	}
}

func TestTrainingGoesOn(t *testing.T) {
	samples := made(3, 50, 1)
	first := trained(t, nil, samples, Options{Trees: 5})
	second := trained(t, first, samples, Options{Trees: 5})
	if first.Trees() != 5 || second.Trees() != 10 {
		t.Errorf("%d and %d trees", first.Trees(), second.Trees())
	}
}

// TestSamplesThatFailedAll teach that nothing is fast, without a division by nothing.
func TestSamplesThatFailedAll(t *testing.T) {
	samples := made(1, 20, 1)
	for k := range samples {
		samples[k].LatencySeconds = []float64{0, math.Inf(1), math.NaN(), -1}[k%4]
	}
	scores := make([]float64, len(samples))
	trained(t, nil, samples, Options{}).Predict(rowsOf(samples), scores)
	for _, s := range scores {
		if s != 0 {
			t.Fatalf("a score is %v", s)
		}
	}
}

func TestRowsOfAnotherLengthAreWorst(t *testing.T) {
	m := trained(t, nil, made(1, 20, 1), Options{Trees: 2})
	scores := make([]float64, 3)
	m.Predict([][]float32{nil, make([]float32, len(features.Names())), {1}}, scores)
	if !math.IsInf(scores[0], -1) || !math.IsInf(scores[2], -1) || math.IsInf(scores[1], 0) {
		t.Errorf("scores %v", scores)
	}
	samples := made(1, 3, 1)
	samples[1].Features = samples[1].Features[1:]
	if _, err := Train(context.Background(), nil, samples, Options{}); err == nil || !strings.Contains(err.Error(), features.Set) {
		t.Errorf("a sample of another length: %v", err)
	}
}

func TestAModelIsLoadedAsSaved(t *testing.T) {
	dir := t.TempDir() + "/models"
	if _, err := Load(dir, "cpu-1t-0011"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no model: %v", err)
	}
	m := trained(t, nil, made(2, 50, 1), Options{Trees: 3})
	for range 2 {
		if err := m.Save(dir, "cpu-1t-0011"); err != nil {
			t.Fatal(err)
		}
	}
	back, err := Load(dir, "cpu-1t-0011")
	if err != nil || textOf(t, back) != textOf(t, m) {
		t.Errorf("it is not what was saved: %v", err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
	for _, bad := range []string{"", "../x", ".x", "a b"} {
		if err := m.Save(dir, bad); err == nil || !strings.Contains(err.Error(), "fingerprint") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestAModelOfOtherFeaturesIsRefused, with the name of the first that differs.
func TestAModelOfOtherFeaturesIsRefused(t *testing.T) {
	text := textOf(t, trained(t, nil, made(1, 20, 1), Options{Trees: 1}))
	name := features.Names()[4]
	if _, err := Read(strings.NewReader(strings.Replace(text, name, "other", 1))); err == nil || !strings.Contains(err.Error(), `feature 4 is "other", not "`+name) {
		t.Errorf("another feature: %v", err)
	}
	fewer := "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\nobjective=regression\nfeature_names=" +
		features.Names()[0] + "\nfeature_infos=[0:1]\ntree_sizes=\n\nend of trees\n"
	if _, err := Read(strings.NewReader(fewer)); err == nil || !strings.Contains(err.Error(), "it has 1 features") {
		t.Errorf("fewer features: %v", err)
	}
}

// FuzzRead: whatever a file holds, it is refused or predicts.
func FuzzRead(f *testing.F) {
	text := textOf(f, trained(f, nil, made(2, 30, 1), Options{Trees: 2, Leaves: 4}))
	f.Add(text)
	f.Add(strings.Replace(text, "left_child=1", "left_child=0", 1))
	f.Add(strings.Replace(text, "leaf_value=", "leaf_value=NaN ", 1))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		scores := make([]float64, 2)
		m.Predict(rowsOf(made(1, 2, 1)), scores)
	})
}
