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

// TestFittedRowsAreNotComputedWhole: a product of 3, 4, 6 and 8 rows computes no others in tiles of 6, relative to the
// 12 that two tiles have.
func TestFittedRowsAreNotComputedWhole(t *testing.T) {
	x := &Tile{vec: 1, col: 0, row: -1, limited: []bool{true, false}, timed: [][]int64{{3, 64}, {4, 64}, {6, 64}, {8, 64}}}
	z := tileSizes{th: 1, tw: 6, tv: 8}
	if !x.fits(0, z) || x.unused(z) != 8.0/12 {
		t.Errorf("tiles compute %g times what is needed, want 8/12, fitted %t", x.unused(z), x.fits(0, z))
	}
	if x.timed[0][0] = 100; x.fits(0, z) {
		t.Error("the last of 17 tiles is fitted")
	}
}
