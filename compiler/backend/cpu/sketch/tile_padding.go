package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// insideOf returns the fraction of the reduction's products whose data is not the padding of a stage, or 1 if unknown.
// A tile whose data is all padding, computed at each read, skips the products, as padding adds nothing to a sum.
func (x *Tile) insideOf(pad *schedule.Stage) float64 {
	part := 1.0
	if _, ok := pad.Body.(*expr.Select); !ok || x.feedOps > 0 || len(x.packs) == 0 {
		return part
	}
	for k, list := range x.windows {
		for _, w := range list {
			if w.Along >= 0 {
				part *= w.Kept(x.extents[w.Along], 1, x.reduce[k])
			}
		}
	}
	return part
}

// multiplied returns the fraction of the products that tiles compute. If padding is computed at each read, tiles with
// unrolled window columns skip it per position. Otherwise loops over a window skip whole rows.
func (x *Tile) multiplied(p TileParameters, z tileSizes) float64 {
	if p.Feed != sketch.Inline || x.dot != nil {
		part := 1.0
		for _, axis := range x.rolled(z) {
			part *= x.trimmed(axis, z)
		}
		return part
	}
	if x.inside == 0 || p.Feed != sketch.Inline || len(x.joint) > 0 || !x.columnsWrittenOut(z) {
		return 1
	}
	return x.inside
}

// columnsWrittenOut reports whether steps along the columns of a window are unrolled, so that each step knows which
// of its positions are padding.
func (x *Tile) columnsWrittenOut(z tileSizes) bool {
	axis := x.shared()
	return (x.picks || x.loadsOwn) && x.sharedFor(z) == x.steps[axis]
}

// rowsChecked returns the fraction of the rows of a padded image that check each load in a loop over a window's rows:
// border rows that share a tile with others, so that the loop covers everything inside for any of them.
func (x *Tile) rowsChecked(z tileSizes) float64 {
	if z.th == 1 || x.inside == 0 || x.inside == 1 {
		return 0
	}
	return x.atBorders(x.row, x.extent(x.row), func(k int) bool { return z.ku < sketch.Product(x.steps[k:]) })
}

// bordersChecked returns the fraction of joint positions that check each load: those in the border rows and planes of
// an image. In its border columns, only the outermost positions do.
func (x *Tile) bordersChecked() float64 {
	within := 1.0
	for _, axis := range x.joint[:len(x.joint)-1] {
		within *= 1 - x.atBorders(axis, x.apart[axis], func(k int) bool { return x.reduce[k] > 1 })
	}
	return 1 - within
}

// atBorders returns the fraction of the positions along an axis whose windows are not entirely inside an image. The
// windows lie along the first suitable axis of the reduction.
func (x *Tile) atBorders(axis int, extent int64, suits func(k int) bool) float64 {
	for d := range x.fed.Tensor.Shape {
		stride := x.fed.Coefficient(d, axis)
		for k, n := range x.reduce {
			if c := x.fed.Coefficient(d, len(x.extents)+k); stride != 0 && c != 0 && suits(k) {
				return min(1, c*float64(n-1)/(stride*float64(extent)))
			}
		}
	}
	return 0
}
