package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/sketchtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestTheDefaultIsTheBestOfAllAlgorithms: the best draft of a convolution of 7x7 positions was of F(4x4), but downhill
// from that of F(4x2) lies a point that costs less and has fewer weights.
func TestTheDefaultIsTheBestOfAllAlgorithms(t *testing.T) {
	s := New(sketchtest.Conv(t, 7, 512), sketchtest.Target(t, "x86-64-v3"), schedule.Default)
	defaults := s.Defaults()
	if len(defaults) != len(s.Algorithms()) {
		t.Fatalf("%d defaults of %d algorithms", len(defaults), len(s.Algorithms()))
	}
	best := s.Cost(s.Default())
	for k, p := range defaults {
		if s.Algorithm(p) != s.Algorithms()[k] {
			t.Errorf("default %d is %s", k, s.Format(p))
		}
		if s.Cost(p) < best {
			t.Errorf("%s costs %.0f, the default %.0f", s.Format(p), s.Cost(p), best)
		}
		for _, q := range s.Neighbours(p) {
			if s.Algorithm(q) == s.Algorithm(p) && s.Cost(q) < s.Cost(p) {
				t.Errorf("%s costs less than %s", s.Format(q), s.Format(p))
			}
		}
	}
}
