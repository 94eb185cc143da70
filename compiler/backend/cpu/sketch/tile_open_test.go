package sketch

import "testing"

// TestUnusedPartsOfTilesAreCounted: a tile of four images computes four for one, and as many again for two and three.
func TestUnusedPartsOfTilesAreCounted(t *testing.T) {
	x := &Tile{vec: 2, col: 1, row: 0, timed: [][]int64{{1, 8, 16}, {2, 8, 16}, {3, 8, 16}, {4, 8, 16}}}
	for _, c := range []struct {
		th, tw int64
		want   float64
	}{{1, 1, 1}, {4, 1, 1.6}, {2, 4, 1.2}, {1, 8, 1}} {
		if got := x.unused(tileSizes{th: c.th, tw: c.tw}); got != c.want {
			t.Errorf("tiles of %d x %d compute %g times what is needed, want %g", c.th, c.tw, got, c.want)
		}
	}
	if got := (&Tile{vec: 2, col: 1}).unused(tileSizes{th: 1, tw: 6}); got != 1 {
		t.Errorf("of fixed extents, tiles compute %g times what is needed", got)
	}
}
