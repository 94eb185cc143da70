package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// TestDefaultIsTheBestOfAllAlgorithms uses a convolution of 7x7 positions whose best draft is F(4x4), although
// descent from F(4x2) reaches a point with a lower cost and fewer weights.
func TestDefaultIsTheBestOfAllAlgorithms(t *testing.T) {
	s := New(Conv(t, 7, 512), Target(t, "x86-64-v3"), schedule.Default)
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

// TestTransformedWeightsArePrefetched checks that prefetching reduces the cost of Winograd's weights from memory by a
// quarter, and that partial tiles in columns cost more than whole ones.
func TestTransformedWeightsArePrefetched(t *testing.T) {
	s := New(Conv(t, 7, 512), Target(t, "x86-64-v4"), schedule.Default)
	cost := func(s *searchspace.Space, point string) float64 {
		p, ok := s.Parse(point)
		if !ok {
			t.Fatalf("%s is not legal", point)
		}
		return s.Cost(p)
	}
	s = s.Of(F2x2)
	if with, without := cost(s, "wt=8 wv=2 wcb=1 wku=2 wpf=2048"), cost(s, "wt=8 wv=2 wcb=1 wku=2"); with > 0.85*without {
		t.Errorf("with prefetching it costs %g, without %g; measured, without takes 1.3 to 1.45 times as long", with, without)
	}
	s = New(Conv(t, 28, 128), Target(t, "x86-64-v4"), schedule.Default).Of(F4x4)
	if six, four := cost(s, "wt=4 wv=6 wcb=1 wku=2 wpf=2048"), cost(s, "wt=5 wv=4 wcb=1 wku=2 wpf=2048"); six < four {
		t.Errorf("6 of 8 vectors and the 2 that are left cost %g, twice 4 %g", six, four)
	}
}
