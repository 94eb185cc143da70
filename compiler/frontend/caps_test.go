package frontend

import "testing"

func TestCaps(t *testing.T) {
	for _, c := range []struct {
		bounds Bounds
		ratio  int64
		caps   []int64
	}{
		{Bounds{Min: 1, Max: 512}, minRatio, []int64{1, 8, 64}},
		{Bounds{Min: 1, Max: 512}, 4, []int64{1, 8, 32, 128}},
		{Bounds{Min: 1, Max: 32}, minRatio, []int64{1}},
		{Bounds{Min: 100, Max: 512}, minRatio, []int64{100}},
		{Bounds{Min: 32, Max: 1280, Step: 32}, minRatio, []int64{1}},
		{Bounds{Min: 32, Max: 1280, Step: 32, Caps: []int64{640}}, minRatio, []int64{20}},
		{Bounds{Min: 0, Max: 64, Step: 32, Frequencies: map[int64]float64{32: 5, 64: 1}}, minRatio, []int64{1}},
		{Bounds{Min: 1, Max: 512}, noRatio, nil},
		{Bounds{Min: 1, Max: 512, Caps: []int64{64, 8, 512}}, minRatio, []int64{8, 64}},
		{Bounds{Min: 1, Max: 512, Frequencies: map[int64]float64{12: 50, 37: 30, 128: 15, 400: 5}}, minRatio, []int64{12, 37, 128}},
	} {
		caps := c.bounds.units().caps(c.ratio)
		if len(caps) != len(c.caps) {
			t.Errorf("%+v has caps %v, want %v", c.bounds, caps, c.caps)
			continue
		}
		total := 0.0
		for k, n := range caps {
			if n != c.caps[k] {
				t.Errorf("%+v has caps %v, want %v", c.bounds, caps, c.caps)
			}
		}
		for _, share := range c.bounds.shares(caps) {
			total += share
		}
		if total < 0.999 || total > 1.001 {
			t.Errorf("the shares of %+v add up to %v", c.bounds, total)
		}
	}
}
