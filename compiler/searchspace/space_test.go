package searchspace

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// pair are the parameters of counting.
type pair struct{ a, b int64 }

// counting is a structure with parameters of which every choice is legal.
type counting struct{}

func (counting) Legal(pair) error { return nil }

func (counting) Cost(p pair) float64 { return float64(10 - p.a - p.b) }

func (counting) Apply(*schedule.Schedule, pair) error { return nil }

// Reconciled wants b to be no larger than a.
func (counting) Reconciled(p pair) pair { return pair{p.a, min(p.b, p.a)} }

// single is a structure with one parameter, which no cost depends on.
type single struct{}

func (single) Legal(int64) error { return nil }

func (single) Cost(int64) float64 { return 10 }

func (single) Apply(*schedule.Schedule, int64) error { return nil }

var two, four = Algorithm{"two", 2}, Algorithm{"four", 4}

// counted returns a space of a direct sum and of two other algorithms.
func counted() *Space {
	a := Parameter[pair]{Knob{Name: "a", Values: []int64{1, 2}}, func(p *pair) *int64 { return &p.a }}
	b := Parameter[pair]{Knob{Name: "b", Values: []int64{1, 2, 3}, Unrolls: true}, func(p *pair) *int64 { return &p.b }}
	w := Parameter[int64]{Knob{Name: "w", Values: []int64{1, 2}}, func(p *int64) *int64 { return p }}
	direct := &Sketch[pair]{
		Open:     []Parameter[pair]{a, b},
		Variants: []Variant[pair]{{Direct, counting{}}},
		Good:     []Candidate[pair]{{Direct, pair{b: 3}}, {Direct, pair{1, 3}}},
	}
	others := &Sketch[int64]{
		Open:     []Parameter[int64]{w},
		Variants: []Variant[int64]{{two, single{}}, {four, single{}}},
		Good:     []Candidate[int64]{{four, 2}},
	}
	return New(&expr.Workload{}, &target.Target{}, direct, others)
}

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
	if want := []string{"alg=0 a=1 b=1", "alg=4 w=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDescentKeepsTheAlgorithm also checks that it ends where no neighbour is cheaper.
func TestDescentKeepsTheAlgorithm(t *testing.T) {
	s := counted()
	if got := s.Format(s.descend(Point{0, 0, 0, 0})); got != "alg=0 a=2 b=3" {
		t.Errorf("it ends at %s", got)
	}
	if q := s.descend(Point{1, 0, 0, 0}); q[0] != 1 {
		t.Errorf("it ends at %s", s.Format(q))
	}
}

// TestPointsIdentifyTheirAlgorithm also checks that a part of the space has one.
func TestPointsIdentifyTheirAlgorithm(t *testing.T) {
	s := counted()
	if all := s.Algorithms(); !slices.Equal(all, []Algorithm{Direct, two, four}) {
		t.Errorf("the algorithms are %v", all)
	}
	if a := s.Algorithm(Point{2, 0, 0, 1}); a != four {
		t.Errorf("the point computes by %v", a)
	}
	part := s.Of(two)
	if a := part.Algorithm(part.Default()); a != two || !slices.Equal(part.Algorithms(), []Algorithm{two}) {
		t.Errorf("the part of %v computes by %v", two, a)
	}
}

// TestParametersHaveTheValuesOfTheirKnobs, and those that are not open keep theirs.
func TestParametersHaveTheValuesOfTheirKnobs(t *testing.T) {
	k := Sketch[pair]{Open: WithChoices([]Parameter[pair]{
		{Knob{Name: "a", Values: []int64{7}}, func(p *pair) *int64 { return &p.a }},
		{Knob{Name: "b", Values: []int64{1, 2}}, func(p *pair) *int64 { return &p.b }},
	}), Fixed: pair{a: 5}}
	if got := k.parameters([]int64{2}); len(k.Open) != 1 || got != (pair{5, 2}) {
		t.Errorf("%d knobs, parameters %v", len(k.Open), got)
	}
}
