package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// strassenNests builds the loop nests of one schedule.
type strassenNests struct {
	*sketch.Builder
	x   *strassen
	z   strassenSizes
	ids schedule.StrassenStages
	out int
	// chunk, tile and pair are loops of the map that ends the unit: over chunks of row tiles in a strip of columns,
	// over the tiles, and over pairs of vectors in a pair of rows.
	chunk, tile, pair int
}

// Apply implements searchspace.Structure.
func (x *strassenVariant) Apply(s *schedule.Schedule, p strassenParameters) (err error) {
	defer sketch.Catch(&err)
	b, u, z := &sketch.Builder{S: s}, x.unit, x.sizes(p)
	ids := sketch.Get(s.Strassen(u.Acc, x.lanes, z.sums))
	for _, f := range u.Feeds {
		b.Do(s.Inline(f))
	}
	b.Do(s.Inline(u.Acc))
	acc := sketch.Get(s.CacheWrite(ids.Product))
	n := &strassenNests{Builder: b, x: x.strassen, z: z, ids: ids, out: u.Out}
	n.output()
	for _, o := range slices.Backward(u.Also) {
		n.also(o)
	}
	n.left()
	n.product(acc)
	n.accumulate(acc)
	n.right()
	return nil
}

// output builds the nest of the map that ends the unit.
//
//	parallel over (blocks of rows, strips of columns)
//	  the sums of the right operand's strip              unless they are compiled
//	  for tiles of rows
//	    the seven products of the tile
//	    for rows, vectors of a block
//	      out = ...                                      2 rows x 2 vectors unrolled, vectorized
func (n *strassenNests) output() {
	const peel = schedule.Peel
	x := n.x
	tiles, inTile := n.Split(n.out, x.row, 2*n.z.rows, peel)
	blocks, tiles := n.Split(n.out, tiles, n.z.rowTiles, peel)
	rows, parity := n.Split(n.out, inTile, 2, peel)
	strips, inStrip := n.Split(n.out, x.col, 2*n.z.vectors*x.lanes, peel)
	pairs, pair := n.Split(n.out, inStrip, 2*x.lanes, peel)
	side, lane := n.Split(n.out, pair, x.lanes, peel)
	n.Do(n.S.Reorder(n.out, blocks, strips, tiles, rows, pairs, parity, side, lane))
	n.Mark(n.S.Unroll, n.out, parity, side)
	n.Mark(n.S.Vectorize, n.out, lane)
	n.tile, n.pair, n.chunk = tiles, pairs, n.Fuse(n.out, []int{blocks, strips})
	n.Mark(n.S.Parallel, n.out, n.chunk)
}

// also computes an intermediate output, four tiles of it at a time.
func (n *strassenNests) also(id int) {
	unit, lane := n.Split(id, n.x.col, n.x.lanes, schedule.Peel)
	n.Do(n.S.Reorder(id, n.x.row, unit, lane))
	n.Mark(n.S.Unroll, id, n.x.row, unit)
	n.Mark(n.S.Vectorize, id, lane)
	n.ComputeAt(id, n.out, n.pair)
}

// left computes the sums of the left operand.
func (n *strassenNests) left() {
	n.seven(n.ids.Left)
	n.Mark(n.S.Parallel, n.ids.Left, 1)
}

// seven computes all seven sums of each vector of an operand.
func (n *strassenNests) seven(id int) {
	vectors, lane := n.Split(id, 2, n.x.lanes, schedule.Peel)
	n.Do(n.S.Reorder(id, 1, vectors, 0, lane))
	n.Mark(n.S.Unroll, id, 0)
	n.Mark(n.S.Vectorize, id, lane)
}

// right lays out the data of the right operand that tiles read: its precomputed sums, or the operand itself.
func (n *strassenNests) right() {
	constant, width := n.x.p.Constant, n.z.vectors*n.x.lanes
	layout := []schedule.PackDim{{Dim: 2, Factor: width}, {Dim: 0}, {Dim: 1}, {Dim: 2, Factor: width, Inner: true}}
	if n.z.sums == schedule.Computed {
		n.sums()
		inner, column := n.x.p.InnerDim, 1-n.x.p.InnerDim
		layout = []schedule.PackDim{
			{Dim: column, Factor: 2 * width},
			{Dim: inner, Factor: n.x.k, Inner: true}, {Dim: inner, Factor: n.x.k},
			{Dim: column, Factor: 2 * width, Inner: true},
		}
	}
	n.Do(n.S.Pack(constant, layout))
	if n.z.pf > 0 {
		n.Do(n.S.Prefetch(constant, n.z.pf))
	}
}

// sums computes the sums of the right operand for a strip of columns.
func (n *strassenNests) sums() {
	id := n.ids.Right
	n.seven(id)
	n.ComputeAt(id, n.out, n.chunk)
	if n.z.pf > 0 {
		n.Do(n.S.Fetch(id, n.z.pf))
	}
}

// product computes the seven products of a tile into a buffer.
func (n *strassenNests) product(acc int) {
	id := n.ids.Product
	unit, lane := n.Split(id, 2, n.x.lanes, schedule.Peel)
	n.Do(n.S.Reorder(id, 0, 1, unit, lane))
	n.Mark(n.S.Unroll, id, 1, unit)
	n.Mark(n.S.Vectorize, id, lane)
	n.ComputeAt(id, n.out, n.tile)
	n.ComputeAt(acc, id, 0)
}

func (n *strassenNests) accumulate(id int) {
	unit, lane := n.Split(id, 2, n.x.lanes, schedule.Peel)
	reduction, unrolled := n.UnrollInnermost(id, []int{3}, []int64{n.x.k}, n.z.ku)
	order := append([]int{0}, reduction...)
	n.Do(n.S.Reorder(id, append(order, 1, unit, lane)...))
	n.Mark(n.S.Unroll, id, reduction[len(reduction)-unrolled:]...)
	n.Mark(n.S.Unroll, id, 1, unit)
	n.Mark(n.S.Vectorize, id, lane)
}
