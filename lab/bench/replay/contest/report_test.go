package contest

import (
	"reflect"
	"testing"
)

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

func TestARunThatMissesCountsAsTheBudget(t *testing.T) {
	r := &Report{Budget: 100, Shares: []float64{0.8, 0.99}, Budgets: []int{1, 2}}
	got := r.result("ga", []*run{{share: []float64{0.5, 0.8}, code: 200}, {share: []float64{1}, code: 100}})
	want := Result{Search: "ga", Trials: []float64{1.5, 50.5}, Missed: []int{0, 1}, After: []float64{0.75, 0.9}, Code: 150}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWinnersDoNotKnowTheWorkload(t *testing.T) {
	variants := []Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", Known: Same}}
	r := &Report{Mean: []Result{{After: []float64{0.9}}, {After: []float64{0.9500}}, {After: []float64{0.95005}}, {After: []float64{1}}}}
	if got := r.winners(variants, 0); !reflect.DeepEqual(got, []string{"b", "c"}) {
		t.Errorf("winners %v, want b and c", got)
	}
}

func TestSummariesAreOverTheTasks(t *testing.T) {
	r := &Report{Shares: []float64{0.9}, Budgets: []int{8}}
	tasks := []Task{
		{Results: []Result{{Trials: []float64{1}, Missed: []int{0}, After: []float64{1}}}},
		{Results: []Result{{Trials: []float64{9}, Missed: []int{2}, After: []float64{0.8}}}},
	}
	want := []Result{{Search: "ga", Trials: []float64{5}, Missed: []int{1}, After: []float64{0.9}}}
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
