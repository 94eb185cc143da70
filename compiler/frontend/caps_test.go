package frontend

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/program"
)

// TestKernelsAreTimedWithTheExtentsThatOccur covers unknown and known distributions, steps and caps. The last point is
// the largest extent, at which results are verified.
func TestKernelsAreTimedWithTheExtentsThatOccur(t *testing.T) {
	for _, c := range []struct {
		bounds Bounds
		caps   []int64
		points [][]int64
	}{
		{Bounds{Min: 1, Max: 512}, []int64{1, 8, 64}, [][]int64{{1, 1, 1, 1}, {3, 4, 6, 8}, {15, 24, 39, 64}, {109, 182, 306, 512}}},
		{Bounds{Min: 0, Max: 16}, nil, [][]int64{{2, 4, 8, 16}}},
		{Bounds{Min: 100, Max: 110}, []int64{100}, [][]int64{{100, 100, 100, 100}, {103, 105, 108, 110}}},
		{Bounds{Min: 32, Max: 1280, Step: 32}, []int64{1}, [][]int64{{1, 1, 1, 1}, {4, 9, 19, 40}}},
		{Bounds{Min: 1, Max: 512, Caps: []int64{64, 1, 512}}, []int64{1, 64}, [][]int64{{1, 1, 1, 1}, {5, 11, 27, 64}, {109, 182, 306, 512}}},
		{Bounds{Min: 1, Max: 512, Frequencies: map[int64]float64{12: 50, 37: 30, 128: 15, 400: 5}}, nil, [][]int64{{12, 12, 128, 512}}},
	} {
		extents := []program.Extent{{Name: "n"}}
		if given, err := choose(extents, map[string]Bounds{"n": c.bounds}); err != nil || given != (c.bounds.Caps != nil || c.bounds.Frequencies != nil) {
			t.Fatal(given, err)
		}
		if e := extents[0]; !slices.Equal(e.Caps, c.caps) || !slices.EqualFunc(e.Points, c.points, slices.Equal) {
			t.Errorf("%+v has caps %v and points %v, want %v and %v", c.bounds, e.Caps, e.Points, c.caps, c.points)
		}
	}
}

// TestExtentsAreSmallAndLargeIndependently: two extents with the same bounds have other points but the last.
func TestExtentsAreSmallAndLargeIndependently(t *testing.T) {
	extents := []program.Extent{{Name: "h"}, {Name: "w"}}
	b := Bounds{Min: 1, Max: 512, Caps: []int64{512}}
	if _, err := choose(extents, map[string]Bounds{"h": b, "w": b}); err != nil {
		t.Fatal(err)
	}
	if h, w := extents[0].Points[0], extents[1].Points[0]; !slices.Equal(h, []int64{5, 23, 108, 512}) || !slices.Equal(w, []int64{23, 108, 5, 512}) {
		t.Errorf("the points are %v and %v", h, w)
	}
}
