package tuner

import (
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestMatureSearchesTryNeighboursOfTheBest checks that it tries neighbours of the fastest in one knob, regardless of
// the analytic cost, and more children.
func TestMatureSearchesTryNeighboursOfTheBest(t *testing.T) {
	search, s := newTestSearch(t, "gbdt", kerneltest.Product(t, 64, 96, 64))
	g := search.(*learner)
	for !g.mature() {
		if n := len(g.children()); n > raised {
			t.Fatalf("%d children after %d trials, want no more than %d", n, len(g.trials), raised)
		}
		for _, c := range g.Propose(4) {
			g.Observe(measure(s, c))
		}
	}
	if n := len(g.children()); n <= raised {
		t.Errorf("%d children of a mature search, want more than %d", n, raised)
	}
	has := map[string]bool{}
	for _, m := range g.population() {
		has[m.candidate.Digest] = true
	}
	for _, m := range g.fastest[:min(breeding, len(g.fastest))] {
		for _, p := range s.Neighbours(m.point) {
			if near := g.prospect(p); near != nil && !has[near.candidate.Digest] && !g.seen[near.candidate.Digest] {
				t.Errorf("%s is not looked at, a neighbour of %s", near.candidate.Origin, s.Format(m.point))
			}
		}
	}
}
