package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/sketch"
)

// maxKept is the fraction of a loop above which trimming gains too little.
const maxKept = 0.97

// trimmed returns the fraction of products left when padding is omitted along an axis of the reduction.
func (x *Tile) trimmed(axis int, z tileSizes) float64 {
	part := 1.0
	if len(x.joint) > 0 || x.matrices != nil || axis >= len(x.windows) {
		return part
	}
	extents := x.tileExtents(z)
	for _, w := range x.windows[axis] {
		if w.Along >= 0 {
			part = min(part, w.Kept(x.extents[w.Along], int64(extents[w.Along]), x.reduce[axis]))
		}
	}
	if part > maxKept {
		return 1
	}
	return part
}

// rolled returns the axes of the reduction that are whole loops: neither unrolled nor split.
func (x *Tile) rolled(z tileSizes) []int {
	last := len(x.order) - 1
	k, written := last, z.ku
	for ; k >= 0 && written > 1; k-- {
		extent := x.steps[x.order[k]]
		if k == last && z.kb > 0 {
			extent = z.kb
		}
		if extent > written { // partially unrolled
			k--
			break
		}
		written /= extent
	}
	return slices.DeleteFunc(slices.Clone(x.order[:k+1]), func(axis int) bool {
		return x.dot != nil && axis == len(x.order)-1 || z.kb > 0 && axis == x.order[last]
	})
}

// trim makes the loops of a reduction omit padding.
func (x *Tile) trim(b *sketch.Builder, acc int, z tileSizes) {
	for _, axis := range x.rolled(z) {
		if x.trimmed(axis, z) == 1 {
			continue
		}
		if g := b.S.Stages[acc]; len(b.S.Windows(g, g.Reduce[axis])) > 0 { // unless it was inlined or copied
			b.Do(b.S.Trim(acc, len(x.extents)+axis))
		}
	}
}
