package describe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/testkit/graphfuzz"
	"pgregory.net/rapid"
)

func parseTarget(t testing.TB, name string, threads int) *target.Target {
	t.Helper()
	m, err := target.Parse(name, threads)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tasksOf are a model's workloads, those of several nodes first.
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

func builtin(t testing.TB, name string) []*expr.Workload {
	t.Helper()
	m, err := model.Build(name, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tasksOf(t, m)
}

// scheduled is a random candidate of a workload.
func scheduled(t testing.TB, sp *space.Space, rng *rand.Rand) (*schedule.Schedule, float64) {
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

// TestFeaturesOfAnyCandidate: every candidate of every workload has finite features, the same each time, and the same
// for a schedule that was replayed from its trace.
func TestFeaturesOfAnyCandidate(t *testing.T) {
	targets := []*target.Target{parseTarget(t, "x86-64-v4", 2), parseTarget(t, "x86-64-v3", 1), parseTarget(t, "arm64", 4)}
	check := func(t testing.TB, w *expr.Workload, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		on := targets[rng.IntN(len(targets))]
		sp := sketch.New(w, on, schedule.Default)
		s, cost := scheduled(t, sp, rng)
		row := Candidate(s, on, cost).Values
		if len(row) != len(Set.Columns) {
			t.Fatalf("%d features for %d names", len(row), len(Set.Columns))
		}
		for k, v := range row {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("%s is %v\n%s\n%s", Set.Columns[k], v, w.Text(), s.Trace())
			}
		}
		again, err := schedule.Replay(w, s.Trace())
		if err != nil {
			t.Fatal(err)
		}
		if other := Candidate(again, on, cost).Values; !slices.Equal(row, other) {
			t.Fatalf("features of the same schedule differ\n%s\n%s", w.Text(), s.Trace())
		}
		Candidate(s, on, math.NaN())
	}
	t.Run("models", func(t *testing.T) {
		for _, name := range []string{"resnet-18", "mobilenet-v2", "bert-small", "squeezenet-v1.1"} {
			for k, w := range builtin(t, name) {
				for n := range 4 {
					check(t, w, uint64(100*k+n))
				}
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			m := graphfuzz.Generate(rapid.Uint64().Draw(r, "model")).Model
			p, err := frontend.Import(m, frontend.Options{})
			if err != nil {
				r.Skip(err)
			}
			for _, task := range p.Tasks {
				check(t, task.Workload, rapid.Uint64().Draw(r, "point"))
			}
		})
	})
}

func TestEveryFeatureIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			documented = append(documented, strings.Trim(strings.TrimSpace(cells[1]), "`"))
		}
	}
	for _, name := range Set.Columns {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/features.md does not describe %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(Set.Columns, name) {
			t.Errorf("docs/features.md describes %s, which is not a feature", name)
		}
	}
	if !strings.Contains(string(text), Set.Name) {
		t.Errorf("docs/features.md does not say that it describes %s", Set.Name)
	}
}

// BenchmarkAppend takes the features of one candidate of each heavy task of ResNet-18 and BERT-small.
func BenchmarkCandidate(b *testing.B) {
	on := parseTarget(b, "x86-64-v3", 2)
	for _, name := range []string{"resnet-18", "bert-small"} {
		for k, w := range builtin(b, name) {
			if k >= 8 {
				break
			}
			sp := sketch.New(w, on, schedule.Default)
			s, cost := scheduled(b, sp, rand.New(rand.NewPCG(1, 1)))
			b.Run(fmt.Sprint(name, k, len(s.Stages)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Candidate(s, on, cost)
				}
			})
		}
	}
}

// analysed is the analysis of a point, given as text.
func analysed(t testing.TB, w *expr.Workload, on *target.Target, point string) *analysis {
	t.Helper()
	sp := sketch.New(w, on, schedule.Strict)
	p, ok := sp.Parse(point)
	if !ok {
		t.Fatalf("%s is not legal", point)
	}
	s, err := sp.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	a := new(analysis)
	a.run(s, on, sp.Cost(p))
	return a
}

// TestTwiceTheRowsAreTwiceTheArithmetic: instructions, iterations and cycles grow with the work, and what is relative
// to it stays.
func TestTwiceTheRowsAreTwiceTheArithmetic(t *testing.T) {
	on := parseTarget(t, "x86-64-v3", 1)
	const point = "tv=2 tw=6 th=1 hb=1 cb=1 outer=0 inner=0 kb=0 ku=1 pf=0"
	one, two := analysed(t, exprtest.Product(t, 96, 64, 128), on, point), analysed(t, exprtest.Product(t, 192, 64, 128), on, point)
	for _, c := range []struct {
		name     string
		one, two float64
	}{
		{"multiply-adds", one.total.operations.multiplyAdds, two.total.operations.multiplyAdds},
		{"iterations", one.total.iterations, two.total.iterations},
		{"steps", one.total.steps, two.total.steps},
		{"loads", one.total.vectors, two.total.vectors},
		{"cycles of the ports", one.total.spent.ports, two.total.spent.ports},
	} {
		if c.one <= 0 || math.Abs(c.two/c.one-2) > 1e-9 {
			t.Errorf("%s: %v, then %v", c.name, c.one, c.two)
		}
	}
	if want := 96. * 64 * 128 / 8; math.Abs(one.total.operations.multiplyAdds-want) > 1e-6 {
		t.Errorf("%v multiply-adds of vectors instead of %v", one.total.operations.multiplyAdds, want)
	}
	if w := one.heaviest.inner; w.accumulators != 12 || w.vectors != 2 || w.scalars != 6 {
		t.Errorf("a tile of 6 x 2 vectors: %v accumulators, loads of %v vectors and %v scalars", w.accumulators, w.vectors, w.scalars)
	}
}

// TestTheOrderOfFusedLoopsIsSeen: blocks of rows and of columns are one loop in a schedule, and which of them is
// inside decides what a cache is filled with again and again. Such candidates had the same features.
func TestTheOrderOfFusedLoopsIsSeen(t *testing.T) {
	on := parseTarget(t, "x86-64-v3", 1)
	w := exprtest.Product(t, 1536, 768, 768)
	const point = "tv=2 tw=6 th=1 hb=4 cb=2 inner=0 kb=0 ku=1 pf=0 outer="
	rows, columns := analysed(t, w, on, point+"0"), analysed(t, w, on, point+"1")
	if rows.heaviest.trace.fills == columns.heaviest.trace.fills {
		t.Errorf("both orders fill caches by %v lines", rows.heaviest.trace.fills)
	}
}

// TestATileThatCrossesRowsPadsThemWhole: of rows and columns joined, tiles of five positions cross the ends of rows of
// 56, and what is padded inside of one is a box: all of two rows. Such candidates took ten times what was thought.
func TestATileThatCrossesRowsPadsThemWhole(t *testing.T) {
	machine := parseTarget(t, "x86-64-v3", 1)
	for _, w := range builtin(t, "mobilenet-v2") {
		if !strings.Contains(w.Text(), "f32[113,113,96]") || !strings.Contains(w.Text(), "f32[56,56,96]") {
			continue
		}
		sp := sketch.New(w, machine, schedule.Default)
		waste := func(tile int) float32 {
			p, ok := sp.Parse(fmt.Sprintf("tv=1 tw=%d th=1 hb=16 cb=8 outer=0 inner=0 ku=9 pf=0 joint=1 feed=3", tile))
			if !ok {
				t.Fatal("the point is not of the space")
			}
			s, err := sp.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			return Candidate(s, machine, sp.Cost(p)).Values[slices.Index(Set.Columns, "sum_waste")]
		}
		if whole, crossing := waste(7), waste(5); !(crossing > whole+2) {
			t.Errorf("a waste of %.2f doublings where tiles cross rows, %.2f where they do not", crossing, whole)
		}
		return
	}
	t.Fatal("the model has no such task")
}

// TestCodeGrowsWithTheTileAndItsBorders: a window that is told from its borders by the index is written for each side
// of them.
func TestCodeGrowsWithTheTileAndItsBorders(t *testing.T) {
	m, compared := parseTarget(t, "x86-64-v3", 1), 0
	for _, w := range builtin(t, "mobilenet-v2") {
		sp := sketch.New(w, m, schedule.Strict)
		code := func(origin string) float64 {
			p, ok := sp.Parse(origin)
			if !ok || sp.Format(p) != origin {
				return 0
			}
			s, err := sp.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			return Code(s, m)
		}
		const rest = " hb=1 cb=1 outer=0 inner=0 ku=9 pf=0 joint=0 feed="
		small, large, borders := code("tv=1 tw=1 th=1"+rest+"1"), code("tv=2 tw=2 th=1"+rest+"1"), code("tv=1 tw=1 th=1"+rest+"0")
		if small == 0 || large == 0 || borders == 0 {
			continue
		}
		compared++
		if !(0 < small && 2*small < large && 2*small < borders) {
			t.Errorf("%g instructions, with a larger tile %g, with borders %g", small, large, borders)
		}
	}
	if compared == 0 {
		t.Error("no window was found")
	}
}
