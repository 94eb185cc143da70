package cost_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func parseTarget(t testing.TB, name string, threads int) *target.Target {
	t.Helper()
	m, err := target.Parse(name, threads)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// builtin returns the workloads of a built-in model.
func builtin(t testing.TB, name string) []*expr.Workload {
	t.Helper()
	return stored(t, name, array.Storage{})
}

// stored returns the workloads of a built-in model whose factors are stored in a type.
func stored(t testing.TB, name string, storage array.Storage) []*expr.Workload {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	var list []*expr.Workload
	for _, task := range p.Tasks {
		list = append(list, task.Workload)
	}
	return list
}

// analysed returns the analysis of a point, given as text.
func analysed(t testing.TB, w *expr.Workload, on *target.Target, point string) *cost.Analysis {
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
	return analyse(s, on)
}

// TestTwiceTheRowsAreTwiceTheArithmetic checks that instructions, iterations and cycles grow with the work, and that
// relative values stay the same.
func TestTwiceTheRowsAreTwiceTheArithmetic(t *testing.T) {
	on := parseTarget(t, "x86-64-v3", 1)
	const point = "tv=2 tw=6 th=1 hb=1 cb=1 outer=0 inner=0 kb=0 ku=1 pf=0"
	one, two := analysed(t, kerneltest.Product(t, 96, 64, 128), on, point), analysed(t, kerneltest.Product(t, 192, 64, 128), on, point)
	for _, c := range []struct {
		name     string
		one, two float64
	}{
		{"multiply-adds", one.Total.Operations.MultiplyAdds, two.Total.Operations.MultiplyAdds},
		{"iterations", one.Total.Iterations, two.Total.Iterations},
		{"steps", one.Total.Steps, two.Total.Steps},
		{"loads", one.Total.Vectors, two.Total.Vectors},
		{"cycles of the ports", one.Total.Cycles.Ports, two.Total.Cycles.Ports},
	} {
		if c.one <= 0 || math.Abs(c.two/c.one-2) > 1e-9 {
			t.Errorf("%s: %v, then %v", c.name, c.one, c.two)
		}
	}
	if want := 96. * 64 * 128 / 8; math.Abs(one.Total.Operations.MultiplyAdds-want) > 1e-6 {
		t.Errorf("%v multiply-adds of vectors instead of %v", one.Total.Operations.MultiplyAdds, want)
	}
	if w := one.Heaviest.Tile; w.Accumulators != 12 || w.Vectors != 2 || w.Scalars != 6 {
		t.Errorf("a tile of 6 x 2 vectors: %v accumulators, loads of %v vectors and %v scalars", w.Accumulators, w.Vectors, w.Scalars)
	}
}

// TestOrderOfFusedLoopsIsSeen guards against ignoring the order within a fused loop of row and column blocks,
// which decides what refills a cache. Such candidates had the same cost.
func TestOrderOfFusedLoopsIsSeen(t *testing.T) {
	on := parseTarget(t, "x86-64-v3", 1)
	w := kerneltest.Product(t, 1536, 768, 768)
	const point = "tv=2 tw=6 th=1 hb=4 cb=2 inner=0 kb=0 ku=1 pf=0 outer="
	rows, columns := analysed(t, w, on, point+"0"), analysed(t, w, on, point+"1")
	if rows.Heaviest.Traffic.Fills == columns.Heaviest.Traffic.Fills {
		t.Errorf("both orders fill caches by %v lines", rows.Heaviest.Traffic.Fills)
	}
}

// TestTileThatCrossesRowsComputesItsPositionsAlone uses joined rows and columns: tiles of three positions cross the
// ends of rows of 28, but the reduction has the joint axis, too, and keeps no more sums than positions.
func TestTileThatCrossesRowsComputesItsPositionsAlone(t *testing.T) {
	wasted(t, "resnet-18", "f32[3,3,128,128]", "tv=1 tw=3 th=1 hb=1 cb=1 outer=0 inner=0 ku=1 pf=0 joint=1 feed=1")
}

// TestBlocksOfDividedAxesAreParts covers Winograd's algorithm, whose positions are quotients and remainders, and
// Strassen's, which selects halves by quotients. A block must compute only its part, with little redundancy.
func TestBlocksOfDividedAxesAreParts(t *testing.T) {
	wasted(t, "resnet-18", "f32[3,3,128,128]", "alg=4 wt=7 wv=2 wb=7 wcb=2 wku=1 wimage=0 wpf=0")
	wasted(t, "resnet-18", "f32[3,3,128,128]", "alg=4 wt=7 wv=2 wb=7 wcb=2 wku=1 wimage=2 wpf=0")
	wasted(t, "mobilenet-v2", "f32[320,1280]", "alg=70 st=5 sv=2 sb=4 sku=1 spf=0")
}

// wasted checks that a point computes at most a third more than results require, for the workloads of a model whose
// text contains has.
func wasted(t *testing.T, model, has, point string) {
	t.Helper()
	on := parseTarget(t, "x86-64-v4", 1)
	found := false
	for _, w := range builtin(t, model) {
		if !strings.Contains(w.Text(), has) {
			continue
		}
		found = true
		sp := sketch.New(w, on, schedule.Default)
		p, ok := sp.Parse(point)
		if !ok {
			t.Fatalf("%s is not of the space", point)
		}
		s, err := sp.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		total := analyse(s, on).Total
		if more := total.Iterations / total.Useful; more > 4./3 {
			t.Errorf("%s computes %.2f times as much as there is", point, more)
		}
	}
	if !found {
		t.Fatalf("%s has no task with %s", model, has)
	}
}

// TestTileThatCrossesRowsPadsThemWhole uses joined rows and columns: tiles of five positions cross the ends of rows
// of 56, and a tile's padding is a box of two whole rows. Such candidates took ten times the estimate.
func TestTileThatCrossesRowsPadsThemWhole(t *testing.T) {
	on := parseTarget(t, "x86-64-v3", 1)
	for _, w := range builtin(t, "mobilenet-v2") {
		if !strings.Contains(w.Text(), "f32[113,113,96]") || !strings.Contains(w.Text(), "f32[56,56,96]") {
			continue
		}
		sp := sketch.New(w, on, schedule.Default)
		waste := func(tile int) float64 {
			p, ok := sp.Parse(fmt.Sprintf("tv=1 tw=%d th=1 hb=16 cb=8 outer=0 inner=0 ku=9 pf=0 joint=1 feed=3", tile))
			if !ok {
				t.Fatal("the point is not of the space")
			}
			s, err := sp.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			total := analyse(s, on).Total
			return total.Iterations / total.Useful
		}
		if whole, crossing := waste(7), waste(5); !(crossing > 4*whole) {
			t.Errorf("%.2f times the work where tiles cross rows, %.2f where they do not", crossing, whole)
		}
		return
	}
	t.Fatal("the model has no such task")
}

// TestRegionCostsWhereSeveralWorkersShareALoop checks that a single worker, or a loop of one piece, starts no
// region.
func TestRegionCostsWhereSeveralWorkersShareALoop(t *testing.T) {
	w := kerneltest.Product(t, 96, 64, 128)
	const tile = "tv=2 tw=6 th=1 cb=64 outer=0 inner=0 kb=0 ku=1 pf=0 hb="
	for _, c := range []struct {
		name    string
		workers int
		point   string
		regions float64
	}{
		{"pieces of one worker", 1, tile + "1", 0},
		{"pieces of two workers", 2, tile + "1", 1},
		{"one piece", 2, tile + "16", 0},
	} {
		on := parseTarget(t, "x86-64-v3", c.workers)
		a := analysed(t, w, on, c.point)
		want := c.regions * microarch.Region(on)
		for k := range a.Statements {
			want += a.Statements[k].Cycles.Total()
		}
		if got := a.Cycles(); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: %.0f cycles, want %.0f", c.name, got, want)
		}
	}
}

func analyse(s *schedule.Schedule, t *target.Target) *cost.Analysis {
	a := new(cost.Analysis)
	a.Run(s, t)
	return a
}
