package tuner

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// product is a matrix product with a constant, m x k x n.
func product(t testing.TB, m, k, n int64) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", array.Float32, m, k), expr.NewConstant("b", array.Float32, k, n)
	c := expr.ReduceOver("c", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{c})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testTarget(t testing.TB) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v4", 2)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTestSearch(t testing.TB, algorithm string, w *expr.Workload) (Search, *space.Space) {
	t.Helper()
	s := space.New(w, testTarget(t), schedule.Default)
	search, err := NewSearch(s, nil, Options{Algorithm: algorithm, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return search, s
}

// measure is the made-up device of these tests: the analytic cost, as seconds.
func measure(s *space.Space, c Candidate) Trial {
	return Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: s.Cost(c.Point) * 1e-9}
}

func TestEverySearchBeginsWithTheDefaultAndNeverRepeats(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			search, s := newTestSearch(t, name, product(t, 64, 96, 64))
			seen := map[string]bool{}
			for round := range 10 {
				batch := search.Propose(16)
				if len(batch) != 16 {
					t.Fatalf("round %d has %d candidates", round, len(batch))
				}
				if round == 0 && batch[0].Origin != s.Format(s.Default()) {
					t.Errorf("first candidate is %s, not the default %s", batch[0].Origin, s.Format(s.Default()))
				}
				for _, c := range batch {
					if seen[c.Digest] {
						t.Fatalf("round %d repeats %s", round, c.Origin)
					}
					seen[c.Digest] = true
					search.Observe(measure(s, c))
				}
			}
		})
	}
}

func TestASmallSpaceIsExhausted(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			search, _ := newTestSearch(t, name, product(t, 1, 2, 16))
			total := 0
			for {
				batch := search.Propose(16)
				if len(batch) == 0 {
					break
				}
				total += len(batch)
			}
			if total == 0 || total > 200 {
				t.Errorf("proposed %d candidates of a tiny space", total)
			}
		})
	}
}

func TestAResumedSearchGoesOnAsIfNeverInterrupted(t *testing.T) {
	for _, name := range []string{"gbdt", "ga", "random"} {
		t.Run(name, func(t *testing.T) {
			w := product(t, 128, 64, 128)
			whole, s := newTestSearch(t, name, w)
			resumed, _ := newTestSearch(t, name, w)
			for range 3 {
				for _, c := range whole.Propose(16) {
					whole.Observe(measure(s, c))
					resumed.Observe(measure(s, c))
				}
			}
			a, b := whole.Propose(16), resumed.Propose(16)
			for k := range a {
				if a[k].Digest != b[k].Digest {
					t.Fatalf("candidate %d: %s, resumed %s", k, a[k].Origin, b[k].Origin)
				}
			}
		})
	}
}

// TestEveryPartCanBeLeftOut: the search still finds something new each time, and more than the default schedule.
func TestEveryPartCanBeLeftOut(t *testing.T) {
	for name, o := range map[string]Options{
		"transfer": {NoTransfer: true}, "model": {NoModel: true}, "draft": {NoDraft: true}, "seeds": {NoSeeds: true},
		"all": {NoTransfer: true, NoModel: true, NoDraft: true, NoSeeds: true},
	} {
		t.Run("no "+name, func(t *testing.T) {
			s := space.New(product(t, 128, 64, 128), testTarget(t), schedule.Default)
			search, err := NewSearch(s, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 4 {
				batch := search.Propose(8)
				if len(batch) != 8 {
					t.Fatalf("round %d has %d candidates", round, len(batch))
				}
				for k, c := range batch {
					trial := measure(s, c)
					if k == 3 {
						trial.LatencySeconds, trial.Failed = 0, true
					}
					search.Observe(trial)
				}
			}
		})
	}
}

// TestGeneticFindsBetterSchedulesThanRandom: on the mean over seeds, of what both found in eight batches.
func TestGeneticFindsBetterSchedulesThanRandom(t *testing.T) {
	s := space.New(product(t, 784, 256, 512), testTarget(t), schedule.Default)
	best := func(name string, seed uint64) float64 {
		search, err := NewSearch(s, nil, Options{Algorithm: name, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		best := s.Cost(s.Default())
		start := best
		for range 8 {
			for _, c := range search.Propose(16)[1:] {
				trial := measure(s, c)
				// A device that disagrees with the analytic cost: it likes deep unrolling.
				trial.LatencySeconds /= 1 + float64(len(c.Trace)%7)/10
				search.Observe(trial)
				best = min(best, trial.LatencySeconds*1e9)
			}
		}
		return best / start
	}
	const seeds = 10
	ga, random := 0.0, 0.0
	for seed := range uint64(seeds) {
		ga += best("ga", seed) / seeds
		random += best("random", seed) / seeds
	}
	if ga > random {
		t.Errorf("best of ga is %.3f of the default's latency, of random %.3f", ga, random)
	}
}

func TestUnknownAlgorithm(t *testing.T) {
	s := space.New(product(t, 4, 4, 16), testTarget(t), schedule.Default)
	_, err := NewSearch(s, nil, Options{Algorithm: "magic", Seed: 1})
	if want := `tuner: there is no search algorithm "magic"; there are [ga gbdt grid random]`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
