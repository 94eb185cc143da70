package sketch

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// joinPositions makes the tile whose positions continue in the next row, and in the next image: of 7 x 7 positions,
// tiles of six waste five positions in the last tile rather than five in each row. Each position has its own address,
// computed once per tile. It requires several axes that do not affect the operands of the vectors, such as the
// images, rows and columns of a convolution. Of axes with a limit only the first can be joined, since loops over the
// others would not end there.
func (x *Tile) joinPositions(acc *schedule.Stage) {
	if x.col < 0 {
		return
	}
	var axes []int
	shared := false
	for k, e := range x.extents {
		if k == x.vec || e == 1 {
			continue
		}
		joins := true
		for _, a := range x.accesses[:len(x.accesses)-1] {
			if a.MovesWith(x.vec) && !a.MovesWith(x.col) {
				shared, joins = true, joins && !a.MovesWith(k)
			}
		}
		if joins {
			if acc.Axes[k].Limit != nil {
				axes = nil
			}
			axes = append(axes, k)
		}
	}
	if !shared || len(axes) < 2 {
		return
	}
	x.joined = x.along(axes)
}

// along returns the tile with its positions along the given axes, flattened into the last of them.
func (x *Tile) along(axes []int) *Tile {
	last := axes[len(axes)-1]
	y := *x
	y.extents, y.accesses = slices.Clone(x.extents), slices.Clone(x.accesses)
	y.col, y.row, y.joint = last, -1, axes
	total := int64(1)
	for _, k := range axes {
		total *= x.extents[k]
		y.extents[k] = 1
	}
	y.extents[last] = total
	y.apart = x.extents
	y.fed = x.fedAmong(y.accesses)
	return &y
}

// spread divides the positions along the joint axes, counted along the last of them, among all of them.
func (x *Tile) spread(extents []float64) {
	if len(x.joint) == 0 {
		return
	}
	left := extents[x.col]
	for _, k := range slices.Backward(x.joint) {
		rows := float64(x.apart[k])
		extents[k], left = min(rows, left), math.Ceil(left/rows)
	}
}

// chosen returns the tile that the parameters select.
func (x *Tile) chosen(p TileParameters) *Tile {
	if x.joined != nil && p.Joint == 1 {
		x = x.joined
	}
	if x.narrow.widened != nil && p.Wide == 1 {
		x = x.narrow.widened
	}
	return x
}

// Reconciled implements searchspace.Reconciler, for parameters chosen for positions along other axes: a tile is no
// wider than a row, and a tile along a joint axis has one row.
func (x *Tile) Reconciled(p TileParameters) TileParameters {
	switch {
	case x.joined == nil:
	case x.matrices != nil && p.Joint == 0:
	case p.Joint == 0:
		p.Columns = min(p.Columns, x.extent(x.col))
	default:
		p.Rows = 1
		if p.Feed == sketch.InBlock {
			p.Feed = sketch.Alone
		}
	}
	return p
}

// fuseJoint fuses the joint axes of the stage that the tiles belong to. All other axes but the vectors' go outside.
func (x *Tile) fuseJoint(b *sketch.Builder, out int, outer []int) int {
	order := slices.Concat(outer, x.joint)
	if x.vec >= 0 {
		order = append(order, x.vec)
	}
	b.Do(b.S.Reorder(out, order...))
	return b.Fuse(out, x.joint)
}
