package space

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/loop"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Tiles of six positions leave a seventh of a row of seven unused, but hardly anything of 49.
func TestPositionsGoOnInTheNextRow(t *testing.T) {
	s := New(conv(t, 7, 64), parseTarget(t, "x86-64-v3"), schedule.Strict)
	x := s.plan.heaviest().sketch.(*tile)
	if x.joined == nil || x.joined.extent(x.joined.col) != 49 || x.joined.row != -1 {
		t.Fatalf("the joint axis is %+v", x.joined)
	}
	rows, _ := s.Parse("tv=2 tw=6 th=1 joint=0 feed=1")
	joint, ok := s.Parse("tv=2 tw=6 th=1 joint=1 feed=1")
	if !ok || s.Cost(joint) >= s.Cost(rows) {
		t.Errorf("%s costs %v, %s %v", s.Format(joint), s.Cost(joint), s.Format(rows), s.Cost(rows))
	}
	applied, err := s.Apply(joint)
	if err != nil {
		t.Fatal(err)
	}
	if trace := string(applied.Trace()); !strings.Contains(trace, "\nflatten ") {
		t.Errorf("no axis is flattened:\n%s", trace)
	}
	if _, err := loop.Lower(applied); err != nil {
		t.Error(err)
	}
}

func TestATileOfJointPositionsTouchesTheRowsItCrosses(t *testing.T) {
	s := New(conv(t, 7, 64), parseTarget(t, "x86-64-v3"), schedule.Strict)
	x := s.plan.heaviest().sketch.(*tile)
	a := &access{joint: x.joined.joint, rows: x.extents}
	extents := make([]int64, len(x.extents))
	for _, c := range []struct{ tile, columns, rows int64 }{{1, 1, 1}, {6, 6, 1}, {7, 7, 1}, {8, 7, 2}, {49, 7, 7}} {
		extents[x.joined.col] = c.tile
		if w, h := a.along(x.col, extents), a.along(x.row, extents); w != c.columns || h != c.rows {
			t.Errorf("%d positions touch %d columns and %d rows; want %d and %d", c.tile, w, h, c.columns, c.rows)
		}
	}
}

func TestAProductWithABatchHasNoJointAxis(t *testing.T) {
	s := New(keys(t), parseTarget(t, "x86-64-v3"), schedule.Strict)
	if x := s.plan.heaviest().sketch.(*tile); x.joined != nil {
		t.Errorf("axes %v are joined, but batches have right sides of their own", x.joined.joint)
	}
}
