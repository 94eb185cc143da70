package tile

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// Padding that is no longer computed where it is read still adds nothing to a sum. The loop over the rows of a window
// leaves out those outside of an image, where all positions of a tile agree: of a 3x3 window on an image of 7x7, one
// row in ten.

// trimmable is an axis of the reduction along which an index reads padding: step times the axis, and stride times an
// axis of the results, which has the positions of a tile.
type trimmable struct {
	axis, along  int
	step, stride int64
	// The index is first at least where it reads something else, and less than end.
	first, end int64
}

// mostKept is the part of a loop above which nothing is left out: there is too little to gain.
const mostKept = 0.97

// findTrimmable notes the axes of the reduction whose loops may leave out padding.
func (x *Tile) findTrimmable(s *schedule.Schedule, acc *schedule.Stage) {
	x.trims = nil
	for r, v := range acc.Reduce {
		for _, band := range s.Bands(acc, v) {
			index := expr.Linearize(band.Index)
			step, _ := index.Coef(v)
			t := trimmable{axis: r, along: -1, step: step, first: band.First - index.Const, end: band.End - index.Const}
			if len(index.Terms) == 2 {
				t.along = slices.IndexFunc(acc.Axes, func(a *expr.Var) bool { return expr.Uses(band.Index, a) })
			}
			if t.along >= 0 {
				t.stride, _ = index.Coef(acc.Axes[t.along])
			}
			if t.step > 0 && t.stride > 0 {
				x.trims = append(x.trims, t)
			}
		}
	}
}

// kept is the part of the iterations along its axis that are left for tiles of so many positions.
func (t trimmable) kept(extent, positions, window int64) float64 {
	left, tiles := int64(0), int64(0)
	for from := int64(0); from < extent; from += positions {
		to := min(from+positions, extent) - 1
		first := max(0, nest.CeilDiv(max(0, t.first-t.stride*to), t.step))
		end := min(window, nest.CeilDiv(max(0, t.end-t.stride*from), t.step))
		left += max(0, end-first)
		tiles++
	}
	return float64(left) / float64(tiles*window)
}

// trimmed is the part of the products that are left when padding is left out along an axis of the reduction.
func (x *Tile) trimmed(axis int, z sizes) float64 {
	part := 1.0
	if len(x.joint) > 0 || x.matrices != nil {
		return part
	}
	extents := x.tileExtents(z)
	for _, t := range x.trims {
		if t.axis == axis {
			part = min(part, t.kept(x.extents[t.along], extents[t.along], x.reduce[axis]))
		}
	}
	if part > mostKept {
		return 1
	}
	return part
}

// rolled are the axes of the reduction that are loops as a whole: neither written out nor cut into pieces.
func (x *Tile) rolled(z sizes) []int {
	last := len(x.order) - 1
	k, written := last, z.ku
	for ; k >= 0 && written > 1; k-- {
		extent := x.steps[x.order[k]]
		if k == last && z.kb > 0 {
			extent = z.kb
		}
		if extent > written { // a part of it is
			k--
			break
		}
		written /= extent
	}
	return slices.DeleteFunc(slices.Clone(x.order[:k+1]), func(axis int) bool {
		return x.dot != nil && axis == len(x.order)-1 || z.kb > 0 && axis == x.order[last]
	})
}

// trim has the loops of a reduction leave out padding.
func (x *Tile) trim(b *nest.Builder, acc int, z sizes) {
	for _, axis := range x.rolled(z) {
		if b.Err != nil || x.trimmed(axis, z) == 1 {
			continue
		}
		if g := b.S.Stages[acc]; len(b.S.Bands(g, g.Reduce[axis])) > 0 { // unless it was inlined, or copied
			b.Do(b.S.Trim(acc, len(x.extents)+axis))
		}
	}
}
