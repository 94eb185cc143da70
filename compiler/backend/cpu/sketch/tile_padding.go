package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Padding that is computed where it is read adds nothing to a sum: where a tile knows that all its data is padding,
// it does not multiply it by a constant.

// insideOf is the part of the reduction's products whose data is not what a stage pads with; 1 where that is not
// known.
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

// isInside says for each value of one axis whether a condition holds in the middle of all others.
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

// insideAlong is the part of the products that read inside along a dimension, of which one axis of the results and
// one of the reduction are the index with the given coefficients.
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

// multiplied is the part of the products that tiles multiply. Where padding is computed where it is read, those whose
// window has its columns written out know it of each position; elsewhere loops over a window leave out whole rows.
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

// columnsWrittenOut reports whether steps along the columns of a window are written out, so that each tells which of
// its positions are padding.
func (x *Tile) columnsWrittenOut(z tileSizes) bool {
	axis := x.shared()
	return (x.picks || x.loadsOwn) && x.sharedFor(z) == x.steps[axis]
}

// rowsChecked is the part of the rows of a padded image that check each load of a loop over the rows of a window:
// those at its borders that are in a tile with others, so that the loop runs over what is inside for any of them.
func (x *Tile) rowsChecked(z tileSizes) float64 {
	if z.th == 1 || x.inside == 0 || x.inside == 1 {
		return 0
	}
	d := slices.IndexFunc(x.fed.Dims, func(axes []int64) bool { return axes[x.row] != 0 })
	if d < 0 { // all rows read the same
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

// bordersChecked is the part of joint positions that check each load: those in the border rows of an image, and in its
// border planes. Of those in its border columns only the outermost do.
func (x *Tile) bordersChecked() float64 {
	within := 1.0
	for _, axis := range x.joint[:len(x.joint)-1] {
		within *= 1 - x.atBorders(axis, x.accesses[0].Rows[axis])
	}
	return 1 - within
}

// atBorders is the part of the positions along an axis of so many whose windows are not all inside of an image.
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
