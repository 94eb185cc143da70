package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// joinPositions makes the tile whose positions go on from the end of one row at the beginning of the next, and of an
// image in the next one: of 7 x 7 positions, tiles of six waste five in the last tile rather than five in each row.
// The rows it crosses have addresses of their own for each position, which are computed once for each tile. It exists
// where several axes leave all operands of the vectors as they are, such as the images, rows and columns of a
// convolution.
func (x *tile) joinPositions() {
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
			if a.movesWith(x.vec) && !a.movesWith(x.col) {
				shared, joins = true, joins && !a.movesWith(k)
			}
		}
		if joins {
			axes = append(axes, k)
		}
	}
	if !shared || len(axes) < 2 {
		return
	}
	x.joined = x.along(axes)
}

// along is the tile with its positions along the given axes, flattened into the last of them.
func (x *tile) along(axes []int) *tile {
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
	for k := range y.accesses {
		y.accesses[k].joint, y.accesses[k].rows = axes, x.extents
	}
	if x.fed != nil {
		y.fed = &y.accesses[x.dot.data]
	}
	return &y
}

// chosen is the tile that parameters mean.
func (x *tile) chosen(p tileParameters) *tile {
	if x.joined != nil && p.joint == 1 {
		return x.joined
	}
	return x
}

// Reconciled implements space.Reconciler, for parameters that were chosen for positions along other axes than the
// point has: a tile is no wider than a row, one along a joint axis has one row.
func (x *tile) Reconciled(p tileParameters) tileParameters {
	switch {
	case x.joined == nil:
	case p.joint == 0:
		p.columns = min(p.columns, x.extent(x.col))
	default:
		p.rows = 1
		if p.feed == feedBlock {
			p.feed = feedRoot
		}
	}
	return p
}

// fuseJoint makes one iterator of the joint axes of the stage that the tiles belong to, all others outside of it but
// the vectors'.
func (x *tile) fuseJoint(b *builder, out int, outer []int) int {
	order := slices.Concat(outer, x.joint)
	if x.vec >= 0 {
		order = append(order, x.vec)
	}
	if b.err == nil {
		b.do(b.s.Reorder(out, order...))
	}
	return b.fuse(out, x.joint)
}

// flatten gives the reduction the joint axis, too.
func (x *tile) flatten(s *schedule.Schedule, acc int) error {
	if len(x.joint) == 0 {
		return nil
	}
	return s.Flatten(acc, x.joint...)
}

// along is how many positions a range of the joint axes covers along axis k.
func (a *access) along(k int, extents []int64) int64 {
	at := slices.Index(a.joint, k)
	if at < 0 {
		return extents[k]
	}
	within := int64(1)
	for _, later := range a.joint[at+1:] {
		within *= a.rows[later]
	}
	return min(a.rows[k], ceilDiv(extents[a.joint[len(a.joint)-1]], within))
}
