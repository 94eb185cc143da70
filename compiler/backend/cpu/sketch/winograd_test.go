package sketch

import "testing"

// TestBlocksOfOpenRowsHaveUnusedTiles: of rows of 16 tiles, of which an execution has 8 on average, blocks of several
// rows compute all, and those of one up to a register tile of 4 too many.
func TestBlocksOfOpenRowsHaveUnusedTiles(t *testing.T) {
	for _, c := range []struct {
		rows, columns int64
		want          float64
	}{{0, 0, 16}, {2, 16, 16}, {1, 16, 9.5}, {1, 8, 9.5}, {1, 1, 9.5}} {
		z := winogradSizes{rows: c.rows, columns: c.columns, tiles: 4, ty: 8, tx: 16}
		if got := (&winograd{openWidth: true}).unused(z); got != c.want/8 {
			t.Errorf("blocks of %d x %d tiles compute %g times what is used, want %g", c.rows, c.columns, got, c.want/8)
		}
		if got := (&winograd{}).unused(z); got != 1 {
			t.Errorf("blocks of %d x %d tiles of fixed rows compute %g times what is used", c.rows, c.columns, got)
		}
	}
}
