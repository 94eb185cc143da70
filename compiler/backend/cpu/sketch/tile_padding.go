package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// insideOf returns the fraction of the reduction's products whose data is not the padding of a stage, or 1 if unknown.
// A tile whose data is all padding, computed at each read, skips the products, as padding adds nothing to a sum.
func (x *Tile) insideOf(pad *schedule.Stage) float64 {
	n, ok := pad.Body.(*expr.Select)
	if !ok || x.feedOps > 0 || len(x.packs) == 0 {
		return 1
	}
	part := 1.0
	for d, v := range pad.Axes {
		if expr.Uses(n.Cond, v) {
			part *= x.insideAlong(x.fed.Dims[d], isInside(n.Cond, pad.Axes, d))
		}
	}
	return part
}

// isInside reports for each value of one axis whether a condition holds in the middle of all others.
func isInside(cond expr.Expr, axes []*expr.Var, along int) []bool {
	at := expr.Simplifier{Values: map[*expr.Var]expr.Expr{}}
	for _, v := range axes {
		at.Values[v] = expr.I(v.Extent / 2)
	}
	list := make([]bool, axes[along].Extent)
	for k := range list {
		at.Values[axes[along]] = expr.I(int64(k))
		holds, known := at.Simplify(cond).(*expr.Int)
		list[k] = !known || holds.Value != 0
	}
	return list
}

// insideAlong returns the fraction of the products that read inside along a dimension, indexed by one axis of the
// results and one of the reduction with the given coefficients.
func (x *Tile) insideAlong(coefficients []int64, inside []bool) float64 {
	steps, windows := coefficients[:len(x.extents)], coefficients[len(x.extents):]
	moves := func(c int64) bool { return c != 0 }
	s, w := slices.IndexFunc(steps, moves), slices.IndexFunc(windows, moves)
	if s < 0 || w < 0 {
		return 1
	}
	count := 0
	for i := range x.extents[s] {
		for r := range x.reduce[w] {
			if at := i*steps[s] + r*windows[w]; at < int64(len(inside)) && inside[at] {
				count++
			}
		}
	}
	return float64(count) / float64(sketch.Product([]int64{x.extents[s], x.reduce[w]}))
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
	d := slices.IndexFunc(x.fed.Dims, func(axes []int64) bool { return axes[x.row] != 0 })
	if d < 0 { // all rows read the same elements
		return 0
	}
	stride, window := x.fed.Dims[d][x.row], x.fed.Dims[d][len(x.extents):]
	for k, c := range window {
		if rolled := z.ku < sketch.Product(x.steps[k:]); c != 0 && rolled {
			return min(1, float64(c*(x.reduce[k]-1))/float64(stride*x.extent(x.row)))
		}
	}
	return 0
}

// bordersChecked returns the fraction of joint positions that check each load: those in the border rows and planes of
// an image. In its border columns, only the outermost positions do.
func (x *Tile) bordersChecked() float64 {
	within := 1.0
	for _, axis := range x.joint[:len(x.joint)-1] {
		within *= 1 - x.atBorders(axis, x.accesses[0].Rows[axis])
	}
	return 1 - within
}

// atBorders returns the fraction of the positions along an axis whose windows are not entirely inside an image.
func (x *Tile) atBorders(axis int, extent int64) float64 {
	for _, dim := range x.fed.Dims {
		for k, c := range dim[len(x.extents):] {
			if dim[axis] != 0 && c != 0 && x.reduce[k] > 1 {
				return min(1, float64(c*(x.reduce[k]-1))/float64(dim[axis]*extent))
			}
		}
	}
	return 0
}
