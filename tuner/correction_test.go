package tuner

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestTrialsOfOneAlgorithmSayLittleOfTheOthers is a regression test: if direct sums were slower than predicted, a
// search assumed the same of untried algorithms, and tried none of them for fifty trials.
func TestTrialsOfOneAlgorithmSayLittleOfTheOthers(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 196, 96, 576), testTarget(t), schedule.Default)
	if len(s.Algorithms()) < 2 {
		t.Fatal("the space has one algorithm")
	}
	for _, o := range []Options{{Seed: 1}, {Seed: 2}, {Seed: 3}, {Seed: 4, NoSeeds: true}} {
		search, err := NewSearch(s, nil, o)
		check(t, err)
		tried := map[searchspace.Algorithm]bool{}
		for range 6 {
			for _, c := range search.Propose(4) {
				tried[s.Algorithm(c.Point)] = true
				trial := measure(s, c)
				if s.Algorithm(c.Point) == searchspace.Direct {
					trial.LatencySeconds *= 1.4
				}
				search.Observe(trial)
			}
		}
		if len(tried) < 2 {
			t.Errorf("seed %d: of %d algorithms only %v was tried", o.Seed, len(s.Algorithms()), tried)
		}
	}
}
