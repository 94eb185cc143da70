package replay

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

func testSets(t testing.TB) []*Set {
	t.Helper()
	sets, err := ReadAll([]string{"testdata"})
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// testDevices returns devices that replay the first n sets.
func testDevices(t testing.TB, n int) []*device {
	t.Helper()
	var devices []*device
	for _, s := range testSets(t)[:n] {
		d, err := newDevice(s)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	return devices
}

// testTrials is the length of a search that reaches the model of its own trials.
const testTrials = 20

var testBatches = Batches{Fewest: 4, Most: 16}

func TestSameSeedAndSetsGiveTheSameCandidates(t *testing.T) {
	devices := testDevices(t, 2)
	one, other := newPast(devices, nil, testBatches), newPast(devices, nil, testBatches)
	for _, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			if testing.Short() && strings.Contains(v.Name, "-no-") {
				t.Skip("slow: repeats a search without one of its parts")
			}
			proposed := func(before *past, seed uint64) []string {
				job, err := before.job(0, v.Known)
				if err != nil {
					t.Fatal(err)
				}
				v.Options.Seed = seed
				r, err := devices[0].search(v.Options, job, testTrials, testBatches, false)
				if err != nil {
					t.Fatal(err)
				}
				return r.digests
			}
			first := proposed(one, 1)
			if again := proposed(other, 1); !slices.Equal(again, first) {
				t.Errorf("proposed %v, then %v", first, again)
			}
			if v.Name != "grid" && slices.Equal(proposed(one, 2), first) {
				t.Error("another seed gives the same candidates")
			}
			if distinct := slices.Compact(slices.Sorted(slices.Values(first))); len(first) != testTrials || len(distinct) != testTrials {
				t.Errorf("%d candidates, %d of them distinct", len(first), len(distinct))
			}
		})
	}
}

func TestReportIsTheSameHoweverManyRunSideBySide(t *testing.T) {
	names := []string{"ga", "gbdt", "gbdt-known"}
	if testing.Short() {
		names = names[:2] // the last one is slow: it repeats an earlier search
	}
	variants, err := Choose(names)
	if err != nil {
		t.Fatal(err)
	}
	o := SearchOptions{Variants: variants, Budget: 12, Seeds: 1, Batches: testBatches, Noisy: true}
	text := func() string {
		r, err := CompareSearches(t.Context(), testSets(t)[:2], o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if a, b := text(), text(); a != b {
		t.Errorf("%s\nthen\n%s", a, b)
	}
}

func TestEverySearchFindsTheBestWhenItMayTryAll(t *testing.T) {
	d := testDevices(t, 1)[0]
	for _, name := range []string{"grid", "random", "ga"} {
		r, err := d.search(tuner.Options{Algorithm: name, Seed: 1}, transfer.NewJob(nil), 2*len(d.points), testBatches, false)
		if err != nil {
			t.Fatal(err)
		}
		if n, reached := r.trialsTo(1); !reached || len(r.digests) > len(d.points) {
			t.Errorf("%s: best after %d trials (%v), of %d", name, n, reached, len(d.points))
		}
	}
}

func TestTransferNeverKnowsTheWorkloadItself(t *testing.T) {
	devices := testDevices(t, 2)
	p := newPast(append(devices, devices[0]), nil, testBatches) // the same workload in a second set
	if tasks := p.othersOf(0); len(tasks) != len(devices)-1 {
		t.Errorf("%d other tasks, want %d", len(tasks), len(devices)-1)
	}
	for k, d := range p.devices {
		for _, task := range p.othersOf(k) {
			if task.Workload.Digest() == d.digest {
				t.Errorf("%s is known before it is searched", d.set.Task)
			}
		}
	}
}

func TestTransferIsWithinATarget(t *testing.T) {
	devices := testDevices(t, 2)
	other := devices[1].set.Target.Clone()
	other.CPU.Threads++
	devices[1].set.Target = other
	for _, task := range newPast(devices, nil, testBatches).othersOf(0) {
		if task.Target.Fingerprint() == other.Fingerprint() {
			t.Error("a task of another target is known")
		}
	}
}

func TestUnrecordedPointsFailWithinALimit(t *testing.T) {
	set := testSets(t)[0]
	whole := set.Points
	set.Points = whole[1:]
	d, err := newDevice(set)
	if err != nil {
		t.Fatal(err)
	}
	if d.unknown != 1 {
		t.Errorf("%d schedules are unknown, want 1", d.unknown)
	}
	if trial := d.measure(tuner.Candidate{Digest: "of something else"}, nil); !trial.Failed {
		t.Errorf("%+v, want a failure", trial)
	}
	set.Points = whole[len(whole)/10:]
	if _, err := newDevice(set); err == nil || !strings.Contains(err.Error(), "record it again") {
		t.Errorf("%v, want the remedy", err)
	}
	for k := range whole {
		whole[k] = Point{Origin: whole[k].Origin, Error: "crash"}
	}
	set.Points = whole
	if _, err := newDevice(set); err == nil || !strings.Contains(err.Error(), "no candidate of the set was right") {
		t.Errorf("%v, want that nothing was right", err)
	}
}

func TestInterruptEndsAContest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := SearchOptions{Variants: Variants()[:1], Budget: 8, Seeds: 50, Batches: testBatches, Progress: func(int, int) { cancel() }}
	if _, err := CompareSearches(ctx, testSets(t)[:1], o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
}

func TestVariantsAreChosenByName(t *testing.T) {
	list, err := Choose([]string{"random", "ga"})
	if err != nil || len(list) != 2 || list[0].Name != "random" || list[1].Name != "ga" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Choose([]string{"magic"}); err == nil || !strings.Contains(err.Error(), `unknown search "magic": want one of ga`) {
		t.Errorf("%v", err)
	}
	if all, err := Choose(nil); err != nil || !reflect.DeepEqual(all, Variants()) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestSampleIsNoSetToSearchButMayBeKnown(t *testing.T) {
	sets := testSets(t)
	sample := *sets[1]
	sample.Sampled = true
	o := SearchOptions{Variants: Variants()[:1], Seeds: 1, Budget: 1, Batches: testBatches}
	if _, err := CompareSearches(t.Context(), []*Set{&sample}, o); err == nil || !strings.Contains(err.Error(), "without --sample") {
		t.Errorf("%v, want the remedy", err)
	}
	p := newPast(testDevices(t, 1), []*Set{sets[0], &sample}, testBatches)
	if tasks := p.othersOf(0); len(tasks) != 1 || tasks[0].Workload != sample.Workload {
		t.Errorf("%d tasks are known, want the sample alone", len(tasks))
	}
}

func TestGuessWithoutAnyOtherWorkloadIsTheDefault(t *testing.T) {
	d := testDevices(t, 1)[0]
	got, err := newPast([]*device{d}, nil, testBatches).guessShare(0)
	if err != nil || got != d.defaultShare() || got <= 0 || got > 1 {
		t.Errorf("%g, %v; want the default's %g", got, err, d.defaultShare())
	}
}

func TestGuessesAreMeasuredPoints(t *testing.T) {
	p := newPast(testDevices(t, 2), nil, testBatches)
	for k, d := range p.devices {
		if got, err := p.guessShare(k); err != nil || got <= 0 || got > 1 {
			t.Errorf("%s: %g, %v; want a share of the best", d.set.Task, got, err)
		}
	}
}

func TestTrialsAndSharesOfARun(t *testing.T) {
	r := &run{share: []float64{0, 0.5, 0.5, 0.9, 0.96}}
	for _, c := range []struct {
		share   float64
		trials  int
		reached bool
	}{{0.5, 2, true}, {0.9, 4, true}, {0.95, 5, true}, {0.99, 5, false}} {
		if n, ok := r.trialsTo(c.share); n != c.trials || ok != c.reached {
			t.Errorf("to %g: %d, %v; want %d, %v", c.share, n, ok, c.trials, c.reached)
		}
	}
	if a, b := r.after(3), r.after(100); a != 0.5 || b != 0.96 {
		t.Errorf("after 3 trials %g, after all %g", a, b)
	}
	if got := (&run{}).after(8); got != 0 {
		t.Errorf("a run without trials has %g", got)
	}
}

func TestRunsThatMissCountAsTheBudget(t *testing.T) {
	r := &Report{Budget: 100, Shares: []float64{0.8, 0.99}, Budgets: []int{1, 2}}
	got := r.result("ga", []*run{{share: []float64{0.5, 0.8}}, {share: []float64{1}}})
	want := SearchResult{Search: "ga", Trials: []float64{1.5, 50.5}, Missed: []int{0, 1}, After: []float64{0.75, 0.9}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWinnersDoNotKnowTheWorkload(t *testing.T) {
	variants := []Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", Known: Same}}
	r := &Report{Mean: []SearchResult{{After: []float64{0.9}}, {After: []float64{0.9500}}, {After: []float64{0.95005}}, {After: []float64{1}}}}
	if got := r.winners(variants, 0); !reflect.DeepEqual(got, []string{"b", "c"}) {
		t.Errorf("winners %v, want b and c", got)
	}
}

func TestSummariesAreOverTheTasks(t *testing.T) {
	r := &Report{Shares: []float64{0.9}, Budgets: []int{8}}
	tasks := []TaskReport{
		{Results: []SearchResult{{Trials: []float64{1}, Missed: []int{0}, After: []float64{1}}}},
		{Results: []SearchResult{{Trials: []float64{9}, Missed: []int{2}, After: []float64{0.8}}}},
	}
	want := []SearchResult{{Search: "ga", Trials: []float64{5}, Missed: []int{1}, After: []float64{0.9}}}
	if got := r.over([]Variant{{Name: "ga"}}, tasks, median); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.over([]Variant{{Name: "ga"}}, nil, mean); got != nil {
		t.Errorf("%+v of no tasks", got)
	}
}

func TestBatchesGrowWithWhatWasTried(t *testing.T) {
	b := Batches{Fewest: 4, Most: 16}
	for tried, want := range map[int]int{0: 4, 4: 4, 8: 8, 100: 16} {
		if got := b.next(tried); got != want {
			t.Errorf("after %d: %d, want %d", tried, got, want)
		}
	}
}
