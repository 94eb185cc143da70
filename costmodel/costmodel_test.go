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

	"github.com/tilth-dev/tilth/compiler/costfeatures"
)

// set is a typical feature set of a backend.
var set = costfeatures.NewSet("test-features-1", []string{"threads", "cost_cycles", "flop", "stores", "loads", "lines", "pages", "tiles", "chunks"}, "cost_cycles")

// made returns samples of several tasks whose latency depends on two features, with a different scale for each task.
// Every tenth sample failed.
func made(tasks, each int, seed uint64) []Sample {
	rng := rand.New(rand.NewPCG(seed, 0))
	var list []Sample
	for task := range tasks {
		for k := range each {
			s := Sample{Features: costfeatures.Row{Set: set, Values: make([]float32, len(set.Columns))}, Task: fmt.Sprint("task", task)}
			for f := range s.Features.Values {
				s.Features.Values[f] = 1 + rng.Float32()
			}
			s.LatencySeconds = 1e-6 * float64(1+task) * (float64(s.Features.Values[3]) + float64(s.Features.Values[7]*s.Features.Values[7]) - 1.5)
			if k%10 == 9 {
				s.LatencySeconds, s.Features.Values[5] = 0, 2
			}
			list = append(list, s)
		}
	}
	return list
}

func featuresOf(samples []Sample) []costfeatures.Row {
	rows := make([]costfeatures.Row, len(samples))
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

// TestFasterCandidatesAreReported ranks candidates of unseen tasks with an uninformative analytic cost.
func TestFasterCandidatesAreReported(t *testing.T) {
	for _, loss := range []Loss{Mixed, Latency, Throughput, Order} {
		m := trained(t, nil, made(8, 200, 1), Options{Loss: loss, Trees: 60, Leaves: 15, Trust: 1})
		held := made(2, 100, 2)
		times := timesOf(t, m, held)
		right, pairs := 0, 0
		for i, a := range held {
			for j, b := range held[:i] {
				if a.Task != b.Task || a.LatencySeconds == 0 || b.LatencySeconds == 0 {
					continue
				}
				pairs++
				if (a.LatencySeconds > b.LatencySeconds) == (times[i] > times[j]) {
					right++
				}
			}
		}
		if share := float64(right) / float64(pairs); share < 0.85 {
			t.Errorf("loss %d: only %.3f of the pairs are in order", loss, share)
		}
	}
}

func timesOf(t testing.TB, m *Model, samples []Sample) []float64 {
	t.Helper()
	times, err := m.Times(featuresOf(samples))
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// TestWithoutAModelTimesAreTheAnalyticCost also checks that a model of consistent samples preserves the cost's order.
func TestWithoutAModelTimesAreTheAnalyticCost(t *testing.T) {
	samples := made(3, 50, 1)
	for k := range samples {
		cost, _ := samples[k].Features.Cost()
		samples[k].LatencySeconds = math.Exp2(cost) * 3e-9
	}
	analytic := timesOf(t, nil, samples)
	for k, v := range timesOf(t, trained(t, nil, samples, Options{Trees: 5, Loss: Latency}), samples) {
		if want := analytic[k] + math.Log2(3); math.Abs(v-want) > 1e-3 {
			t.Fatalf("sample %d: %v, want %v", k, v, want)
		}
	}
}

// TestTrustIsAShareOfWhatIsLearnt excludes the common level of all tasks.
func TestTrustIsAShareOfWhatIsLearnt(t *testing.T) {
	samples := made(3, 50, 1)
	analytic, whole := timesOf(t, nil, samples), timesOf(t, trained(t, nil, samples, Options{Trees: 9, Loss: Latency, Trust: 1}), samples)
	half := timesOf(t, trained(t, nil, samples, Options{Trees: 9, Loss: Latency, Trust: 0.5}), samples)
	for k := range samples {
		a, b := whole[k]-whole[0]-analytic[k]+analytic[0], half[k]-half[0]-analytic[k]+analytic[0]
		if math.Abs(a-2*b) > 1e-9 {
			t.Fatalf("sample %d: corrected by %v, and by %v at half the trust", k, a, b)
		}
	}
}

// TestTrainingIsDeterministic checks that the model is independent of the number of processors and the order of tasks.
func TestTrainingIsDeterministic(t *testing.T) {
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
	if a, b := wrong(t, first, samples), wrong(t, second, samples); b >= a {
		t.Errorf("the error is %v, and %v after more trees", a, b)
	}
}

// TestModelsOfManyTasksHaveMoreTrees checks that few tasks give small models, which would otherwise overfit.
func TestModelsOfManyTasksHaveMoreTrees(t *testing.T) {
	few, many, given := Options{Seed: 3}.For(manyTasks-1), Options{Seed: 3}.For(manyTasks), Options{Trees: 7, Leaves: 5}.For(manyTasks)
	if few.Trees >= many.Trees || few.Leaves <= many.Leaves || few.Seed != 3 || given.Trees != 7 || given.Leaves != 5 {
		t.Errorf("few: %+v, many: %+v, given: %+v", few, many, given)
	}
	if m := trained(t, nil, made(2, 30, 1), Options{}); m.Trees() != few.Trees {
		t.Errorf("a model of two tasks has %d trees, not %d", m.Trees(), few.Trees)
	}
}

// wrong returns the squared error of a model's predictions, up to a constant per task.
func wrong(t *testing.T, m *Model, samples []Sample) (sum float64) {
	t.Helper()
	off, n := map[string]float64{}, map[string]float64{}
	times := timesOf(t, m, samples)
	for k, s := range samples {
		if s.LatencySeconds > 0 {
			off[s.Task] += times[k] + s.Speed()
			n[s.Task]++
		}
	}
	for k, s := range samples {
		if s.LatencySeconds > 0 {
			e := times[k] + s.Speed() - off[s.Task]/n[s.Task]
			sum += e * e
		}
	}
	return sum
}

func TestTrainingNeedsSuccessfulSamples(t *testing.T) {
	samples := made(1, 20, 1)
	for k := range samples {
		samples[k].LatencySeconds = []float64{0, math.Inf(1), math.NaN(), -1}[k%4]
	}
	if _, err := Train(context.Background(), nil, samples, Options{}); err == nil || !strings.Contains(err.Error(), "nothing to learn from") {
		t.Errorf("%v", err)
	}
}

func TestRowsOfAnotherLengthAreRefused(t *testing.T) {
	m := trained(t, nil, made(1, 20, 1), Options{Trees: 2})
	if _, err := m.Times([]costfeatures.Row{{Set: set, Values: make([]float32, len(set.Columns))}, {Set: set, Values: []float32{1}}}); err == nil || !strings.Contains(err.Error(), set.Name) {
		t.Errorf("a row of another length: %v", err)
	}
	samples := made(1, 3, 1)
	samples[1].Features.Values = samples[1].Features.Values[1:]
	if _, err := Train(context.Background(), nil, samples, Options{}); err == nil || !strings.Contains(err.Error(), set.Name) {
		t.Errorf("a sample of another length: %v", err)
	}
}

func TestModelIsLoadedAsSaved(t *testing.T) {
	dir := t.TempDir() + "/models"
	if _, err := Load(dir, "cpu-1t-0011", set); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no model: %v", err)
	}
	m := trained(t, nil, made(2, 50, 1), Options{Trees: 3}).WithDigest("d19e57")
	for range 2 {
		if err := m.Save(dir, "cpu-1t-0011"); err != nil {
			t.Fatal(err)
		}
	}
	back, err := Load(dir, "cpu-1t-0011", set)
	if err != nil || textOf(t, back) != textOf(t, m) || back.Digest() != "d19e57" {
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

// TestModelOfOtherFeaturesIsRefused also checks that the error names the first different feature.
func TestModelOfOtherFeaturesIsRefused(t *testing.T) {
	text := textOf(t, trained(t, nil, made(1, 20, 1), Options{Trees: 1}))
	name := set.Columns[4]
	if _, err := Read(strings.NewReader(strings.Replace(text, name, "other", 1)), set); err == nil || !strings.Contains(err.Error(), `feature 4 is "other", not "`+name) {
		t.Errorf("another feature: %v", err)
	}
	fewer := "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\nobjective=regression\nfeature_names=" +
		set.Columns[0] + "\nfeature_infos=[0:1]\ntree_sizes=\n\nend of trees\n"
	if _, err := Read(strings.NewReader(fewer), set); err == nil || !strings.Contains(err.Error(), "it has 1 features") {
		t.Errorf("fewer features: %v", err)
	}
}

// FuzzRead checks that any file is either refused or can predict.
func FuzzRead(f *testing.F) {
	text := textOf(f, trained(f, nil, made(2, 30, 1), Options{Trees: 2, Leaves: 4}))
	f.Add(text)
	f.Add(strings.Replace(text, "left_child=1", "left_child=0", 1))
	f.Add(strings.Replace(text, "leaf_value=", "leaf_value=NaN ", 1))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text), set)
		if err != nil {
			return
		}
		if _, err := m.Times(featuresOf(made(1, 2, 1))); err != nil {
			t.Fatal(err)
		}
	})
}
