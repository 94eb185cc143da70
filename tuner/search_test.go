package tuner

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

func testTarget(t testing.TB) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v4", 2)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTestSearch(t testing.TB, algorithm string, w *expr.Workload) (Search, *searchspace.Space) {
	t.Helper()
	s := spaceOf(t, w, testTarget(t), schedule.Default)
	search, err := NewSearch(s, nil, Options{Algorithm: algorithm, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return search, s
}

// quickOr returns quick in the quick tier, else full.
func quickOr(quick, full int) int {
	if testing.Short() {
		return quick
	}
	return full
}

// measure simulates a device: the latency is the analytic cost in seconds.
func measure(s *searchspace.Space, c Candidate) Trial {
	return Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: s.Cost(c.Point) * 1e-9}
}

func TestEverySearchBeginsWithTheDefaultAndNeverRepeats(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			search, s := newTestSearch(t, name, kerneltest.Product(t, 64, 96, 64))
			seen := map[string]bool{}
			for round := range quickOr(4, 10) {
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

func TestSmallSpaceIsExhausted(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			search, _ := newTestSearch(t, name, kerneltest.Product(t, 1, int64(quickOr(1, 2)), 16))
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

func TestResumedSearchGoesOnAsIfNeverInterrupted(t *testing.T) {
	for _, name := range []string{"gbdt", "ga", "random"} {
		t.Run(name, func(t *testing.T) {
			w := kerneltest.Product(t, 128, 64, 128)
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

// TestEveryPartOfASearchIsOptional checks that the search without any part still finds new candidates besides the
// default schedule.
func TestEveryPartOfASearchIsOptional(t *testing.T) {
	for name, o := range map[string]Options{
		"transfer": {NoTransfer: true}, "model": {NoModel: true}, "draft": {NoDraft: true}, "seeds": {NoSeeds: true},
		"all": {NoTransfer: true, NoModel: true, NoDraft: true, NoSeeds: true},
	} {
		t.Run("no "+name, func(t *testing.T) {
			s := spaceOf(t, kerneltest.Product(t, 128, 64, 128), testTarget(t), schedule.Default)
			search, err := NewSearch(s, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			for round := range quickOr(2, 4) {
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

// TestCandidatesNameTheirAlgorithms checks direct sums and others against the point that a candidate was made of.
func TestCandidatesNameTheirAlgorithms(t *testing.T) {
	search, s := newTestSearch(t, "random", kerneltest.Product(t, 784, 256, 512))
	direct := 0
	batch := search.Propose(quickOr(64, 256))
	for _, c := range batch {
		by := map[int64][]string{7: {"Strassen"}, 70: {"Strassen+sums"}}[s.Algorithm(c.Point).Number]
		if by == nil {
			direct++
		}
		if !slices.Equal(c.Algorithms, by) {
			t.Errorf("the algorithms of %s are %q, want %q", c.Origin, c.Algorithms, by)
		}
	}
	if direct == 0 || direct == len(batch) {
		t.Errorf("%d of %d candidates are direct sums, want both kinds", direct, len(batch))
	}
}

// TestGeneticFindsBetterSchedulesThanRandom compares the means over seeds after eight batches.
func TestGeneticFindsBetterSchedulesThanRandom(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 784, 256, 512), testTarget(t), schedule.Default)
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
				// The device disagrees with the analytic cost: it prefers deep unrolling.
				trial.LatencySeconds /= 1 + float64(len(c.Trace)%7)/10
				search.Observe(trial)
				best = min(best, trial.LatencySeconds*1e9)
			}
		}
		return best / start
	}
	seeds := quickOr(4, 10)
	ga, random := 0.0, 0.0
	for seed := range seeds {
		ga += best("ga", uint64(seed)) / float64(seeds)
		random += best("random", uint64(seed)) / float64(seeds)
	}
	if ga > random {
		t.Errorf("best of ga is %.3f of the default's latency, of random %.3f", ga, random)
	}
}

func TestUnknownAlgorithm(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 4, 4, 16), testTarget(t), schedule.Default)
	_, err := NewSearch(s, nil, Options{Algorithm: "magic", Seed: 1})
	if want := `tuner: unknown search algorithm "magic": want one of [ga gbdt grid random]`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestSpaceOfOnePointHasOneCandidate also covers a workload without arithmetic, whose space is hardly larger.
func TestSpaceOfOnePointHasOneCandidate(t *testing.T) {
	whole := spaceOf(t, kerneltest.Product(t, 64, 96, 64), testTarget(t), schedule.Default)
	only := map[string][]int64{}
	for k, v := range whole.Default() {
		only[whole.Knobs[k].Name] = whole.Knobs[k].Values[v : v+1]
	}
	one, err := whole.Restrict(only)
	if err != nil {
		t.Fatal(err)
	}
	in := expr.NewInput("a", array.Float32)
	scalar, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("b", nil, func([]expr.Expr) expr.Expr {
		return expr.AddE(in.At(), in.At())
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		for size, s := range map[string]*searchspace.Space{"one": one, "none": spaceOf(t, scalar, testTarget(t), schedule.Default)} {
			search, err := NewSearch(s, nil, Options{Algorithm: name})
			if err != nil {
				t.Fatal(err)
			}
			first := search.Propose(4)
			for _, c := range first {
				search.Observe(Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: 1e-6})
			}
			if again := search.Propose(4); len(first) == 0 || len(first) > 1 && size == "one" || len(first) < 4 && len(again) > 0 {
				t.Errorf("%s, %s: %d candidates, then %d", name, size, len(first), len(again))
			}
		}
	}
}

// TestEverythingFails checks that the search continues without repetitions.
func TestEverythingFails(t *testing.T) {
	for _, name := range Names() {
		search, _ := newTestSearch(t, name, kerneltest.Product(t, 64, 96, 64))
		seen := map[string]bool{}
		for range 4 {
			for _, c := range search.Propose(8) {
				if seen[c.Digest] {
					t.Errorf("%s repeats %s", name, c.Origin)
				}
				seen[c.Digest] = true
				search.Observe(Trial{Digest: c.Digest, Origin: c.Origin, Failed: true})
			}
		}
		if len(seen) != 32 {
			t.Errorf("%s proposed %d candidates", name, len(seen))
		}
	}
}

// TestSearchWithAPastIsResumedAlike interleaves trials of other tasks, in the order of the job's events.
func TestSearchWithAPastIsResumedAlike(t *testing.T) {
	m := testTarget(t)
	spaces := []*searchspace.Space{spaceOf(t, kerneltest.Product(t, 96, 64, 128), m, schedule.Default), spaceOf(t, kerneltest.Product(t, 31, 77, 80), m, schedule.Default)}
	earlier := func() *transfer.History {
		var tasks []*transfer.Task
		for _, n := range []int64{48, 80} {
			task := &transfer.Task{Workload: kerneltest.Product(t, 96, 64, n), Target: m}
			s := spaceOf(t, task.Workload, m, schedule.Default)
			for _, p := range s.Seeds() {
				task.Trials = append(task.Trials, transfer.Trial{Origin: s.Format(p), LatencySeconds: s.Cost(p) * 1e-9})
			}
			tasks = append(tasks, task)
		}
		return transfer.NewHistory(m, tasks)
	}
	begin := func() (list []Search) {
		j := transfer.NewJob(earlier())
		for _, s := range spaces {
			search, err := NewSearch(s, j, Options{Seed: 3})
			check(t, err)
			list = append(list, search)
		}
		return list
	}
	whole, resumed := begin(), begin()
	for range quickOr(2, 4) {
		for k, s := range spaces {
			for _, c := range whole[k].Propose(8) {
				trial := measure(s, c)
				whole[k].Observe(trial)
				resumed[k].Observe(trial)
			}
		}
	}
	for k := range spaces {
		a, b := whole[k].Propose(8), resumed[k].Propose(8)
		for i := range a {
			if a[i].Digest != b[i].Digest {
				t.Fatalf("task %d, candidate %d: %s, resumed %s", k, i, a[i].Origin, b[i].Origin)
			}
		}
	}
}

// TestSearchGoesOnFromAnOlderSpace checks that the fastest earlier candidates are measured again. Others count as
// trials if they still give the measured schedule, and may be proposed otherwise.
func TestSearchGoesOnFromAnOlderSpace(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 96, 64, 128), testTarget(t), schedule.Default)
	task := &transfer.Task{Workload: s.Workload, Target: s.Target}
	digests := map[string]bool{}
	for k, p := range s.Seeds()[1:9] { // the first seed is the default
		sch, err := s.Apply(p)
		check(t, err)
		trial := transfer.Trial{Origin: s.Format(p), Digest: schedule.Digest(sch.Trace()), LatencySeconds: float64(k+1) * 1e-3}
		if k >= 6 {
			trial.Digest = "older"
		} else if k >= confirmed {
			digests[trial.Digest] = true
		}
		task.Trials = append(task.Trials, trial)
	}
	search, err := NewSearch(s, transfer.NewJob(transfer.NewHistory(s.Target, []*transfer.Task{task})), Options{Seed: 1})
	check(t, err)
	first := search.Propose(1 + confirmed)
	for k, c := range first[len(first)-confirmed:] {
		if c.Origin != task.Trials[k].Origin {
			t.Errorf("candidate %d is %s, want %s confirmed", k, c.Origin, task.Trials[k].Origin)
		}
	}
	for _, c := range search.Propose(64) {
		if digests[c.Digest] {
			t.Errorf("%s was known and is proposed", c.Origin)
		}
	}
	if l := search.(*learner); len(l.trials) != len(digests) || len(l.recalled) != 2 {
		t.Errorf("%d trials and %d recalled, want %d and 2", len(l.trials), len(l.recalled), len(digests))
	}
}

// TestSearchBeginsWithTheBestsOfAnotherCompiler checks the first batch after an upgrade of the compiler.
func TestSearchBeginsWithTheBestsOfAnotherCompiler(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 96, 64, 128), testTarget(t).WithToolchain("clang-20.1.0"), schedule.Default)
	before := &transfer.Task{Workload: s.Workload, Target: s.Target.WithToolchain("clang-19.1.7")}
	elsewhere := &transfer.Task{Workload: s.Workload, Target: before.Target.WithThreads(before.Target.Threads() + 1)}
	for k, p := range s.Seeds()[1:9] { // the first seed is the default
		trial := transfer.Trial{Origin: s.Format(p), Digest: "of the other compiler", LatencySeconds: float64(k+1) * 1e-3}
		before.Trials = append(before.Trials, trial)
		trial.LatencySeconds = 1 / trial.LatencySeconds
		elsewhere.Trials = append(elsewhere.Trials, trial)
	}
	h := transfer.NewHistory(s.Target, []*transfer.Task{elsewhere, before, elsewhere})
	search, err := NewSearch(s, transfer.NewJob(h), Options{Seed: 1})
	check(t, err)
	first := search.Propose(1 + confirmed)
	for k, c := range first[len(first)-confirmed:] {
		if c.Origin != before.Trials[k].Origin {
			t.Errorf("candidate %d is %s, want %s", k, c.Origin, before.Trials[k].Origin)
		}
	}
}

// spaceOf returns the candidate schedules of a workload on a target.
func spaceOf(t testing.TB, w *expr.Workload, on *target.Target, numerics schedule.Numerics) *searchspace.Space {
	t.Helper()
	s, err := registry.Space(w, on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
