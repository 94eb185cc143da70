package cost_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

var features cost.Features

func describeTarget(t testing.TB, name string, threads int) *target.Target {
	t.Helper()
	m, err := target.Parse(name, threads)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tasksOf returns a model's workloads, those of several nodes first.
func tasksOf(t testing.TB, m *onnx.Model) []*expr.Workload {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []*expr.Workload
	for _, task := range p.Tasks {
		list = append(list, task.Workload)
	}
	return list
}

func describedModels(t testing.TB, name string) []*expr.Workload {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tasksOf(t, m)
}

// scheduled returns a random candidate of a workload.
func scheduled(t testing.TB, sp *searchspace.Space, rng *rand.Rand) (*schedule.Schedule, float64) {
	t.Helper()
	p, ok := sp.Random(rng)
	if !ok {
		p = sp.Default()
	}
	s, err := sp.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	return s, sp.Cost(p)
}

// TestFeaturesOfAnyCandidate checks that every candidate has finite, deterministic features, which are the same for a
// schedule replayed from its trace.
func TestFeaturesOfAnyCandidate(t *testing.T) {
	targets := []*target.Target{describeTarget(t, "x86-64-v4", 2), describeTarget(t, "x86-64-v3", 1), describeTarget(t, "arm64", 4)}
	check := func(t testing.TB, w *expr.Workload, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		on := targets[rng.IntN(len(targets))]
		sp := sketch.New(w, on, schedule.Default)
		s, estimate := scheduled(t, sp, rng)
		row := features.Describe(s, on, estimate).Values
		if len(row) != len(features.Set().Columns) {
			t.Fatalf("%d features for %d names", len(row), len(features.Set().Columns))
		}
		for k, v := range row {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("%s is %v\n%s\n%s", features.Set().Columns[k], v, w.Text(), s.Trace())
			}
		}
		again, err := schedule.Replay(w, s.Trace())
		if err != nil {
			t.Fatal(err)
		}
		if other := features.Describe(again, on, estimate).Values; !slices.Equal(row, other) {
			t.Fatalf("features of the same schedule differ\n%s\n%s", w.Text(), s.Trace())
		}
		features.Describe(s, on, math.NaN())
	}
	t.Run("models", func(t *testing.T) {
		for _, name := range []string{"resnet-18", "mobilenet-v2", "bert-small", "squeezenet-v1.1"} {
			for k, w := range describedModels(t, name) {
				for n := range 4 {
					check(t, w, uint64(100*k+n))
				}
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		families := kerneltest.Families(describedModels(t, "mlp"))
		rapid.Check(t, func(r *rapid.T) {
			family := rapid.SampledFrom(slices.Sorted(maps.Keys(families))).Draw(r, "family")
			check(t, families[family](r).Merge(), rapid.Uint64().Draw(r, "point"))
		})
	})
}

func TestEveryFeatureIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Processors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			for name := range strings.SplitSeq(cells[1], ",") {
				documented = append(documented, strings.Trim(strings.TrimSpace(name), "`"))
			}
		}
	}
	for _, name := range features.Set().Columns {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/features.md does not describe %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(features.Set().Columns, name) {
			t.Errorf("docs/features.md describes %s, which is not a feature", name)
		}
	}
	if !strings.Contains(string(text), features.Set().Name) {
		t.Errorf("docs/features.md does not say that it describes %s", features.Set().Name)
	}
}

// BenchmarkCandidate computes the features of one candidate of each heavy task of ResNet-18 and BERT-small.
func BenchmarkCandidate(b *testing.B) {
	on := describeTarget(b, "x86-64-v3", 2)
	for _, name := range []string{"resnet-18", "bert-small"} {
		for k, w := range describedModels(b, name) {
			if k >= 8 {
				break
			}
			sp := sketch.New(w, on, schedule.Default)
			s, estimate := scheduled(b, sp, rand.New(rand.NewPCG(1, 1)))
			b.Run(fmt.Sprint(name, k, len(s.Stages)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					features.Describe(s, on, estimate)
				}
			})
		}
	}
}
