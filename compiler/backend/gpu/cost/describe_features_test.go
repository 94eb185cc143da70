package cost_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

func describeCard(t testing.TB) *target.Target {
	t.Helper()
	b := gpusim.Backend{}
	on, err := b.Target(b.Targets()[0].Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func tasks(t testing.TB, name string) []program.Task { return storedTasks(t, name, array.Invalid) }

// storedTasks returns the tasks of a model whose factors are stored as a type.
func storedTasks(t testing.TB, name string, storage array.DType) []program.Task {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Storage: array.Storage{Type: storage}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Tasks
}

// TestFeaturesOfAnyCandidate checks that candidates of all kinds of tasks have finite, deterministic features, which
// are the same for a schedule replayed from its trace. Describing a schedule must not change it.
func TestFeaturesOfAnyCandidate(t *testing.T) {
	on, f := describeCard(t), cost.Features{}
	rng := rand.New(rand.NewPCG(1, 1))
	varies := make([]bool, len(f.Set().Columns))
	var first []float32
	models := []string{"mobilenet-v2", "bert-tiny", "resnet-18"}
	if testing.Short() {
		models = models[:2]
	}
	for _, name := range models {
		for _, task := range append(tasks(t, name), storedTasks(t, name, array.BFloat16)...) {
			s := sketch.New(task.Workload, on, schedule.Fast)
			for _, p := range drawn(s.Random, rng, s.Default()) {
				made, err := s.Apply(p)
				if err != nil {
					t.Fatal(err)
				}
				before := string(made.Trace())
				row := f.Describe(made, on, s.Cost(p)).Values
				for k, v := range row {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Errorf("%s is %v of %s", f.Set().Columns[k], v, s.Format(p))
					}
				}
				again, err := schedule.Replay(task.Workload, made.Trace())
				if err != nil {
					t.Fatal(err)
				}
				if string(made.Trace()) != before || !slices.Equal(row, f.Describe(again, on, s.Cost(p)).Values) {
					t.Errorf("describing %s changes it, or it has other features when it is replayed", s.Format(p))
				}
				if first == nil {
					first = row
				}
				for k := range row {
					varies[k] = varies[k] || row[k] != first[k]
				}
			}
		}
	}
	for k, column := range f.Set().Columns {
		if !varies[k] && !strings.HasPrefix(column, "card_") && column != "launches" && column != "main_share" {
			t.Errorf("%s is %v of all candidates", column, first[k])
		}
	}
}

// drawn returns the default and a few random points.
func drawn[P any](random func(*rand.Rand) (P, bool), rng *rand.Rand, points ...P) []P {
	n := 6
	if testing.Short() {
		n = 2
	}
	for range n {
		if p, ok := random(rng); ok {
			points = append(points, p)
		}
	}
	return points
}

func TestFeaturesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## GPUs\n")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			for name := range strings.SplitSeq(cells[1], ",") {
				documented = append(documented, strings.Trim(strings.TrimSpace(name), "`"))
			}
		}
	}
	set := cost.Features{}.Set()
	if !slices.Equal(documented, set.Columns) {
		t.Errorf("docs/features.md describes %q, want %q", documented, set.Columns)
	}
	if !strings.Contains(section, set.Name) {
		t.Errorf("docs/features.md does not say that it describes %s", set.Name)
	}
}

// BenchmarkDescribe computes the features of one candidate of each task of ResNet-18.
func BenchmarkDescribe(b *testing.B) {
	on := describeCard(b)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, task := range tasks(b, "resnet-18") {
		s := sketch.New(task.Workload, on, schedule.Default)
		p, ok := s.Random(rng)
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(task.Workload.Digest()[:8], func(b *testing.B) {
			for b.Loop() {
				cost.Features{}.Describe(made, on, s.Cost(p))
			}
		})
	}
}
