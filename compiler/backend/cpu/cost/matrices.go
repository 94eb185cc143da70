package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// matrices builds the tile of a statement whose sums are computed by matrix instructions: everything inside the leaf
// with their terms. Its vectors are then matrices, and its lanes the extent of an instruction. ok is false for other
// statements.
func (a *Analysis) matrices(x *Statement) (w Tile, ok bool) {
	g, n := x.Nest.Stage, &x.Nest
	w = Tile{axes: a.room.take(len(n.Axes)), Vector: -1, Lanes: 1, Trips: 1}
	for k, loop := range n.loops {
		if it := g.Leaves[loop.leaf]; it.Kind == schedule.Matrices && it.Format.Tile() {
			w.first, ok = k, true
		}
	}
	if !ok {
		return w, false
	}
	n.within(w.first, w.axes, &a.room)
	inside := g.Leaves[n.loops[w.first].leaf+1:]
	rows, columns := 1.0, 1.0
	for k, it := range inside {
		switch extent := n.extent[it.ID]; len(inside) - k {
		case 1:
			columns = math.Ceil(extent / schedule.TileColumns)
			w.Vector = axisOf(it)
		case 2:
			rows *= math.Ceil(extent / schedule.TileRows)
		default:
			rows *= extent
		}
	}
	w.Matrices = true
	w.Operations, w.Accumulators, w.Vectors = rows*columns, rows*columns, rows+columns
	w.Lanes = product(w.axes) / w.Operations
	w.Steps = x.Iterations() / max(1, product(w.axes))
	if w.first > 0 {
		w.Trips = n.loops[w.first-1].trips
	}
	return w, true
}
