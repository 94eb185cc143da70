package space

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// counting is a sketch of two algorithms beside the direct sum. Every setting is legal.
type counting struct{}

func (counting) Knobs() []Knob { return []Knob{{"a", []int64{1, 2}}, {"b", []int64{1, 2, 3}}} }

func (counting) Algorithms() ([]int64, []Knob) { return []int64{2, 4}, []Knob{{"w", []int64{1, 2}}} }

func (counting) Legal(Settings) error { return nil }

func (counting) Cost(set Settings) float64 { return float64(10 - set["a"] - set["b"]) }

func (counting) Apply(*schedule.Schedule, Settings) error { return nil }

func (counting) Seeds() []string { return []string{"alg=4 w=2", "b=3", "a=1 b=3"} }

// Reconcile wants b to be no larger than a.
func (counting) Reconcile(set Settings) Settings { return Settings{"b": min(set["b"], set["a"])} }

func (counting) Unrolls() []string { return []string{"b"} }

func counted() *Space { return New(&expr.Workload{}, &target.Target{}, counting{}) }

// TestNextCountsEveryPointOnce, also across algorithms.
func TestNextCountsEveryPointOnce(t *testing.T) {
	s := counted()
	var got []string
	for p, ok := make(Point, 4), true; ok; p, ok = s.Next(p) {
		got = append(got, strings.TrimSpace(p.Key()))
	}
	want := []string{"0 0 0 0", "0 0 1 0", "0 0 2 0", "0 1 0 0", "0 1 1 0", "0 1 2 0", "1 0 0 0", "1 0 0 1", "2 0 0 0", "2 0 0 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestSeedsAreReadOnceAndSortedByCost, after they are reconciled.
func TestSeedsAreReadOnceAndSortedByCost(t *testing.T) {
	s := counted()
	var got []string
	for _, p := range s.Seeds() {
		got = append(got, s.Format(p))
	}
	if want := []string{"alg=4 w=2", "alg=0 a=1 b=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestADescentLeavesTheAlgorithmAsItIs and ends where no neighbour is cheaper.
func TestADescentLeavesTheAlgorithmAsItIs(t *testing.T) {
	s := counted()
	if got := s.Format(s.descend(Point{0, 0, 0, 0})); got != "alg=0 a=2 b=3" {
		t.Errorf("it ends at %s", got)
	}
	if q := s.descend(Point{1, 0, 0, 0}); q[0] != 1 {
		t.Errorf("it ends at %s", s.Format(q))
	}
}
