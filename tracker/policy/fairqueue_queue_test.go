package policy_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// order pops n items of one second each and returns their owners.
func order(t rapid.TB, q *policy.Queue[string], n int) string {
	t.Helper()
	var out []string
	for range n {
		item, charge, ok := q.Pop(policy.Filter[string]{})
		if !ok {
			t.Fatalf("nothing is left after %v", out)
		}
		charge.Set(1)
		charge.End()
		out = append(out, item)
	}
	return strings.Join(out, " ")
}

// waiting formats the owners of waiting items and their numbers.
func waiting(q *policy.Queue[string]) string {
	var all []string
	q.EachWaiting(func(owner string, items int) { all = append(all, fmt.Sprint(owner, " ", items)) })
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func fill(q *policy.Queue[string], f policy.Flow, n int) {
	for range n {
		q.Push(f, f.Owner+f.Job, false)
	}
}

func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		flows []policy.Flow
		want  string
	}{
		"equal owners":                       {[]policy.Flow{{Owner: "a"}, {Owner: "b"}}, "a b a b a b a b"},
		"an owner of many jobs":              {[]policy.Flow{{Owner: "a", Job: "1"}, {Owner: "a", Job: "2"}, {Owner: "a", Job: "3"}, {Owner: "b", Job: "1"}}, "a1 b1 a2 b1 a3 b1 a1 b1"},
		"an owner of three times the weight": {[]policy.Flow{{Owner: "a", OwnerWeight: 3}, {Owner: "b"}}, "a a a b a a a b"},
		"a heavier owner that came later":    {[]policy.Flow{{Owner: "a"}, {Owner: "b", OwnerWeight: 2}}, "b a b b a b b a"},
		"a job of three times the priority":  {[]policy.Flow{{Owner: "a", Job: "1", JobWeight: 30}, {Owner: "a", Job: "2", JobWeight: 10}}, "a1 a1 a1 a2 a1 a1 a1 a2"},
		"weights that make no sense":         {[]policy.Flow{{Owner: "a", OwnerWeight: math.NaN()}, {Owner: "b", OwnerWeight: -1}}, "a b a b a b a b"},
	} {
		t.Run(name, func(t *testing.T) {
			q := policy.NewQueue[string](60)
			for _, f := range c.flows {
				fill(q, f, 8)
			}
			if got := order(t, q, 8); got != c.want {
				t.Errorf("took %s, want %s", got, c.want)
			}
		})
	}
}

// TestHeaviestFlowStartsFirst is a regression test: jobs that had not started yet went first in, first out.
func TestHeaviestFlowStartsFirst(t *testing.T) {
	for _, served := range []int{0, 1, 10, 23} {
		q := policy.NewQueue[string](60)
		for i := range 24 {
			fill(q, policy.Flow{Owner: "a", Job: fmt.Sprint(i), JobWeight: 10}, 1)
		}
		for range served {
			_, charge, _ := q.Pop(policy.Filter[string]{})
			charge.Set(120)
			charge.End()
		}
		fill(q, policy.Flow{Owner: "a", Job: "urgent", JobWeight: 100}, 1)
		if got := order(t, q, 1); got != "aurgent" {
			t.Errorf("after %d jobs, %s was taken first", served, got)
		}
	}
}

// TestSuccessionOfHeavyFlowsDoesNotStarveLightOnes submits a heavy job whenever the last one was taken.
func TestSuccessionOfHeavyFlowsDoesNotStarveLightOnes(t *testing.T) {
	q := policy.NewQueue[string](60)
	for i := range 5 {
		fill(q, policy.Flow{Owner: "a", Job: fmt.Sprint("light", i), JobWeight: 10}, 1)
	}
	for i := range 100 {
		heavy := policy.Flow{Owner: "a", Job: fmt.Sprint("heavy", i), JobWeight: 100}
		fill(q, heavy, 1)
		order(t, q, 1)
		q.Forget("a", heavy.Job)
	}
	heavy := 0
	for _, item := range q.Order() {
		heavy += strings.Count(item, "heavy")
	}
	if got := fmt.Sprint(q.Len()-heavy, " light"); got != "0 light" {
		t.Errorf("%s jobs still wait after 100 heavy ones", got)
	}
}

// TestOrderIsTheOrderInWhichItemsAreTaken compares it with the queue itself, for items of equal length.
func TestOrderIsTheOrderInWhichItemsAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := policy.NewQueue[string](60)
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				order(t, q, min(q.Len(), 1))
				continue
			}
			q.Push(policy.Flow{
				Owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"), Job: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "job"),
				OwnerWeight: float64(rapid.IntRange(1, 3).Draw(t, "owner's weight")), JobWeight: float64(rapid.IntRange(1, 100).Draw(t, "job's weight")),
			}, fmt.Sprint(i), false)
		}
		want := strings.Join(q.Order(), " ")
		if got := order(t, q, q.Len()); got != want {
			t.Fatalf("took %s, the order was %s", got, want)
		}
	})
}

func TestIdleOwnersEarnNoCredit(t *testing.T) {
	q := policy.NewQueue[string](60)
	fill(q, policy.Flow{Owner: "a"}, 20)
	order(t, q, 10)
	fill(q, policy.Flow{Owner: "b"}, 20)
	if got := order(t, q, 6); got != "b a b a b a" {
		t.Errorf("took %s", got)
	}
}

func TestIdlePeriodsResetShares(t *testing.T) {
	q := policy.NewQueue[string](60)
	fill(q, policy.Flow{Owner: "a"}, 10)
	order(t, q, 10)
	fill(q, policy.Flow{Owner: "a"}, 10)
	fill(q, policy.Flow{Owner: "b"}, 10)
	if got := order(t, q, 4); got != "a b a b" {
		t.Errorf("took %s", got)
	}
}

func TestChargesAreCorrectedToTheActualCost(t *testing.T) {
	q := policy.NewQueue[string](60)
	fill(q, policy.Flow{Owner: "a"}, 20)
	fill(q, policy.Flow{Owner: "b"}, 20)
	_, charge, _ := q.Pop(policy.Filter[string]{}) // of owner a
	charge.Set(1)
	if got := order(t, q, 2); got != "b a" {
		t.Errorf("by the estimate: %s", got)
	}
	charge.Set(4) // it took as long as four items
	charge.End()
	charge.End()
	charge.Set(100) // too late to count
	if got := order(t, q, 6); got != "b b b b a b" {
		t.Errorf("after the correction: %s", got)
	}
}

func TestFilteredItemsKeepTheirTurn(t *testing.T) {
	q := policy.NewQueue[string](60)
	q.Push(policy.Flow{Owner: "a", Job: "1"}, "retry", false)
	q.Push(policy.Flow{Owner: "a", Job: "1"}, "next", false)
	q.Push(policy.Flow{Owner: "b", Job: "1"}, "other", false)
	item := func(allowed policy.Filter[string]) string {
		got, charge, ok := q.Pop(allowed)
		if !ok {
			return ""
		}
		charge.Set(1)
		charge.End()
		return got
	}
	notRetry := func(s string) bool { return s != "retry" }
	if got := item(policy.Filter[string]{Item: notRetry}); got != "next" {
		t.Errorf("took %q", got)
	}
	onlyB := func(o string) bool { return o == "b" }
	if got := item(policy.Filter[string]{Owner: onlyB}); got != "other" {
		t.Errorf("took %q", got)
	}
	if got := item(policy.Filter[string]{Item: notRetry}); got != "" || q.Len() != 1 {
		t.Errorf("took %q, %d are left", got, q.Len())
	}
	if got := item(policy.Filter[string]{}); got != "retry" || q.Len() != 0 {
		t.Errorf("took %q, %d are left", got, q.Len())
	}
}

// TestOwnerThatWasBarredDoesNotCatchUp is a regression test: an owner that was barred for long was then served
// alone for as long.
func TestOwnerThatWasBarredDoesNotCatchUp(t *testing.T) {
	q := policy.NewQueue[string](60)
	fill(q, policy.Flow{Owner: "a"}, 20)
	fill(q, policy.Flow{Owner: "b"}, 20)
	for range 10 {
		item, charge, _ := q.Pop(policy.Filter[string]{Owner: func(o string) bool { return o != "a" }})
		if item != "b" {
			t.Fatalf("took %s", item)
		}
		charge.Set(1)
		charge.End()
	}
	if got := order(t, q, 6); strings.Count(got, "a") > 4 {
		t.Errorf("took %s", got)
	}
}

func TestJobThatIsRemovedWaitsNoMore(t *testing.T) {
	q := policy.NewQueue[string](60)
	fill(q, policy.Flow{Owner: "a", Job: "1"}, 3)
	fill(q, policy.Flow{Owner: "a", Job: "2"}, 1)
	q.Push(policy.Flow{Owner: "a", Job: "1"}, "first", true)
	if got := fmt.Sprint(q.Remove("a", "1")); got != "[first a1 a1 a1]" || q.Len() != 1 || waiting(q) != "a 1" {
		t.Errorf("removed %s, %d are left", got, q.Len())
	}
	q.Forget("a", "1")
	q.Forget("a", "1")
	if got := order(t, q, 1); got != "a2" {
		t.Errorf("took %s", got)
	}
	if _, _, ok := q.Pop(policy.Filter[string]{}); ok {
		t.Error("something is left")
	}
}

// TestAheadAgreesWithTheQueue compares it with the queue itself.
func TestAheadAgreesWithTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := policy.NewQueue[string](60)
		flow := func(label string) policy.Flow {
			return policy.Flow{
				Owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label), Job: rapid.SampledFrom([]string{"1", "2"}).Draw(t, label),
				OwnerWeight: 2, JobWeight: 3,
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				q.Push(flow("push"), "other", false)
			} else if _, charge, ok := q.Pop(policy.Filter[string]{}); ok {
				charge.Set(rapid.Float64Range(0, 9).Draw(t, "cost"))
				charge.End()
			}
		}
		f := flow("probe")
		f.Job += "'" // a job without waiting items
		q.Begin(f).Set(rapid.Float64Range(0, 20).Draw(t, "held"))
		ahead := q.Ahead(f)
		q.Push(f, "probe", false)
		if item, _, _ := q.Pop(policy.Filter[string]{}); ahead != (item == "other") {
			t.Fatalf("ahead: %v, but %s was taken", ahead, item)
		}
	})
}

// TestOwnersThatCameAndWentAreForgotten checks that only waiting owners use memory.
func TestOwnersThatCameAndWentAreForgotten(t *testing.T) {
	q := policy.NewQueue[string](60)
	for i := range 10_000 {
		f := policy.Flow{Owner: fmt.Sprint("owner", i), Job: "1"}
		fill(q, f, 1)
		order(t, q, 1)
		q.Forget(f.Owner, f.Job)
	}
	if n := q.Owners(); n > 64 {
		t.Errorf("%d owners are remembered", n)
	}
}

// TestSharesFollowWeights checks the documented bound with random costs, weights and numbers of servers, if costs are
// only known at the end.
func TestSharesFollowWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := policy.NewQueue[int](60)
		weights := rapid.SliceOfN(rapid.Float64Range(0.5, 8), 2, 5).Draw(t, "weights")
		servers := rapid.IntRange(1, 8).Draw(t, "servers")
		const longest = 10.0
		push := func(owner int) {
			q.Push(policy.Flow{Owner: fmt.Sprint(owner), OwnerWeight: weights[owner]}, owner, false)
		}
		for owner := range weights {
			for range servers + 1 {
				push(owner)
			}
		}
		spent := make([]float64, len(weights))
		type lease struct {
			charge     *policy.Charge
			cost, ends float64
		}
		var now float64
		var held []lease
		for range 500 {
			if len(held) == servers {
				first := 0
				for i := range held {
					if held[i].ends < held[first].ends {
						first = i
					}
				}
				now = held[first].ends
				held[first].charge.Set(held[first].cost)
				held[first].charge.End()
				held = append(held[:first], held[first+1:]...)
			}
			owner, charge, ok := q.Pop(policy.Filter[int]{})
			if !ok {
				t.Fatal("nothing waits")
			}
			push(owner) // everyone waits throughout
			cost := rapid.Float64Range(0.1, longest).Draw(t, "cost")
			charge.Set(longest / 2)
			spent[owner] += cost
			held = append(held, lease{charge, cost, now + cost})
		}
		for a := range weights {
			for b := range weights {
				bound := (longest/weights[a] + longest/weights[b]) * float64(servers)
				if gap := spent[a]/weights[a] - spent[b]/weights[b]; gap > bound {
					t.Fatalf("owners of weights %v got %v seconds: %v apart, at most %v", weights, spent, gap, bound)
				}
			}
		}
	})
}

func BenchmarkTakeAndPush(b *testing.B) {
	for _, flows := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(flows), func(b *testing.B) {
			q := policy.NewQueue[int](60)
			flow := func(i int) policy.Flow {
				return policy.Flow{Owner: fmt.Sprint(i % 100), Job: fmt.Sprint(i)}
			}
			for i := range flows {
				q.Push(flow(i), i, false)
			}
			for b.Loop() {
				i, charge, _ := q.Pop(policy.Filter[int]{})
				charge.Set(1)
				charge.End()
				q.Push(flow(i), i, false)
			}
		})
	}
}
