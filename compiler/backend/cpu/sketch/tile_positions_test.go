package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// of returns the tile of a workload's only reduction.
func of(t *testing.T, w *expr.Workload) *Tile {
	t.Helper()
	s := schedule.New(w)
	for _, g := range s.Stages {
		if g.Combiner != expr.None {
			return NewTile(s, g, sketch.Unit{Out: g.ID, Acc: g.ID}, Target(t, "x86-64-v3"))
		}
	}
	t.Fatal("nothing is reduced")
	return nil
}

func TestTilesOfABatchOfProductsStayWithinOneProduct(t *testing.T) {
	if x := of(t, Keys(t)); x.col != 1 || x.row != -1 || x.vec != 2 {
		t.Errorf("positions along axes %d and %d, vectors along %d; want 1, none and 2", x.row, x.col, x.vec)
	}
}

func TestProductWithABatchHasNoJointAxis(t *testing.T) {
	if x := of(t, Keys(t)); x.joined != nil {
		t.Errorf("axes %v are joined, but batches have right sides of their own", x.joined.joint)
	}
}

func TestStridedOperandIsCopiedIntoAPanel(t *testing.T) {
	if x := of(t, Keys(t)); x.lanes != 8 || !x.mustPack {
		t.Fatalf("%d lanes, packed %v; want 8 lanes through panels", x.lanes, x.mustPack)
	}
}

func TestPositionsOfAnImageAreOneJointAxis(t *testing.T) {
	if x := of(t, Conv(t, 7, 64)); x.joined == nil || x.joined.extent(x.joined.col) != 49 || x.joined.row != -1 {
		t.Errorf("the joint axis is %+v", x.joined)
	}
}

func TestTileOfJointPositionsTouchesTheRowsItCrosses(t *testing.T) {
	x := of(t, Conv(t, 7, 64))
	for _, c := range []struct{ tile, columns, rows float64 }{{1, 1, 1}, {6, 6, 1}, {7, 7, 1}, {8, 7, 2}, {49, 7, 7}} {
		extents := make([]float64, len(x.extents))
		extents[x.joined.col] = c.tile
		if x.joined.spread(extents); extents[x.col] != c.columns || extents[x.row] != c.rows {
			t.Errorf("%v positions touch %v columns and %v rows; want %v and %v", c.tile, extents[x.col], extents[x.row], c.columns, c.rows)
		}
	}
}
