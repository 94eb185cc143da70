package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// winogradNests builds the loop nests of one schedule.
type winogradNests struct {
	*builder
	x   *winogradTile
	z   winogradSizes
	ids schedule.WinogradStages
	// out is the map that ends the unit; block is the loop over its blocks of tiles.
	out, block int
}

// Apply implements space.Structure.
func (x *winogradTile) Apply(s *schedule.Schedule, p winogradParameters) error {
	b, u := &builder{s: s}, x.unit
	ids, err := s.Winograd(u.acc, x.my, x.mx)
	if err != nil {
		return err
	}
	for _, f := range u.feeds {
		b.do(s.Inline(f))
	}
	b.do(s.Inline(u.acc))
	if b.err != nil {
		return b.err
	}
	n := &winogradNests{builder: b, x: x, z: x.sizes(p), ids: ids, out: u.out}
	tile, err := s.CacheWrite(ids.Product)
	if err != nil {
		return err
	}
	n.alignStorage()
	n.output(x.my, x.mx)
	n.product(tile)
	n.data()
	n.image(p.image)
	n.weights(p.prefetch)
	return b.err
}

// alignStorage keeps rows of the same position of different tiles out of each other's cache sets.
func (n *winogradNests) alignStorage() {
	line := n.x.line
	if n.x.ic%line == 0 {
		n.do(n.s.StorageAlign(n.ids.Data, line))
	}
	if n.x.oc%line == 0 {
		n.do(n.s.StorageAlign(n.ids.Product, line))
	}
}

// output is the nest of the map that ends the unit: for each tile and vector of channels, the transform of the product
// and the my x mx outputs, written out.
//
//	parallel over (images, blocks of tiles)
//	  [image, data and product of the block]
//	  for tiles of the block, vectors of channels
//	    rows, result = Aᵀ product A
//	    out = ...                                        my x mx unrolled, vectorized
func (n *winogradNests) output(my, mx int64) {
	const peel = schedule.Peel
	x := n.x
	rows, row := n.split(n.out, x.y, my, peel)
	columns, column := n.split(n.out, x.x, mx, peel)
	vectors, lane := n.split(n.out, x.c, x.lanes, peel)
	outer := slices.Clone(x.batch)
	var rest []int
	if !n.z.blocked() {
		outer, rest = append(outer, rows), []int{columns}
	} else {
		var rowBlocks, columnBlocks int
		rowBlocks, rows = n.split(n.out, rows, n.z.rows, peel)
		columnBlocks, columns = n.split(n.out, columns, n.z.columns, peel)
		outer, rest = append(outer, rowBlocks, columnBlocks), []int{rows, columns}
	}
	if n.err != nil {
		return
	}
	n.do(n.s.Reorder(n.out, slices.Concat(outer, rest, []int{vectors, row, column, lane})...))
	n.kind(n.s.Unroll, n.out, row, column)
	n.kind(n.s.Vectorize, n.out, lane)
	n.block = n.fuse(n.out, outer)
	n.kind(n.s.Parallel, n.out, n.block)
	if n.err == nil {
		n.do(n.s.ComputeAt(n.ids.Result, n.out, vectors))
		n.do(n.s.ComputeAt(n.ids.Rows, n.out, vectors))
	}
	n.transform(n.ids.Result, 1, 2)
	n.kind(n.s.Unroll, n.ids.Result, 1)
	n.transform(n.ids.Rows, 2, 1)
	n.kind(n.s.Unroll, n.ids.Rows, 2)
}

// transform orders the nest of a stage [T, a, b, C]: for each tile and vector of channels all positions, in the given
// order of the axes, of which the second is written out; it returns the loop over vectors. The first stays a loop:
// partitioning makes about ten versions of the data's transform at the borders of an image, and written out they took
// compilers longer than all the rest of a kernel.
func (n *winogradNests) transform(id, first, second int) (vectors int) {
	vectors, lane := n.split(id, 3, n.x.lanes, schedule.Peel)
	if n.err != nil {
		return 0
	}
	n.do(n.s.Reorder(id, 0, vectors, first, second, lane))
	n.kind(n.s.Unroll, id, second)
	n.kind(n.s.Vectorize, id, lane)
	return vectors
}

// attach computes a stage in the block, or, without blocks, on its own.
func (n *winogradNests) attach(id int, parallel func()) {
	switch {
	case n.err != nil:
	case n.z.blocked():
		n.do(n.s.ComputeAt(id, n.out, n.block))
	default:
		parallel()
	}
}

// image computes the padded activation where the knob says.
func (n *winogradNests) image(where int64) {
	if n.err != nil {
		return
	}
	id := n.ids.Image
	if where == feedInline {
		n.do(n.s.Inline(id))
		return
	}
	rank := len(n.s.Stages[id].Axes)
	_, lane := n.split(id, rank-1, n.x.lanes, schedule.Peel)
	n.kind(n.s.Vectorize, id, lane)
	if where == feedBlock && n.z.blocked() {
		n.do(n.s.ComputeAt(id, n.out, n.block))
		return
	}
	var outer []int
	for k := range rank - 2 {
		outer = append(outer, k)
	}
	n.kind(n.s.Parallel, id, n.fuse(id, outer))
}

// data is Bᵀ image B.
func (n *winogradNests) data() {
	id := n.ids.Data
	vectors := n.transform(id, 1, 2)
	if n.err == nil {
		n.do(n.s.ComputeAt(n.ids.Columns, id, vectors))
	}
	n.transform(n.ids.Columns, 2, 1)
	n.attach(id, func() { n.kind(n.s.Parallel, id, 0) })
}

// product multiplies, position by position, register tiles of wt tiles x wv vectors of output channels.
func (n *winogradNests) product(tile int) {
	const peel = schedule.Peel
	id, z, lanes := n.ids.Product, n.z, n.x.lanes
	tiles, inTile := n.split(id, 0, z.tiles, schedule.Shift)
	vectors, inside := n.split(id, 3, z.vectors*lanes, peel)
	unit, lane := n.split(id, inside, lanes, peel)
	blocks, vectors := n.split(id, vectors, z.vecTiles, peel)
	if n.err != nil {
		return
	}
	n.do(n.s.Reorder(id, slices.Concat([]int{1, 2, blocks, vectors, tiles}, []int{inTile, unit, lane})...))
	n.kind(n.s.Unroll, id, inTile, unit)
	n.kind(n.s.Vectorize, id, lane)
	n.attach(id, func() { n.kind(n.s.Parallel, id, n.fuse(id, []int{1, 2, blocks})) })
	if n.err == nil {
		n.do(n.s.ComputeAt(tile, id, tiles))
	}
	n.accumulate(tile)
}

func (n *winogradNests) accumulate(id int) {
	unit, lane := n.split(id, 3, n.x.lanes, schedule.Peel)
	reduction, unrolled := unrollInnermost(n.builder, id, []int{4}, []int64{n.x.ic}, n.z.ku)
	if n.err != nil {
		return
	}
	n.do(n.s.Reorder(id, slices.Concat([]int{1, 2}, reduction, []int{0, unit, lane})...))
	n.kind(n.s.Unroll, id, reduction[len(reduction)-unrolled:]...)
	n.kind(n.s.Unroll, id, 0, unit)
	n.kind(n.s.Vectorize, id, lane)
}

// weights lays the transformed constant out in the order in which the register tiles read it.
func (n *winogradNests) weights(ahead int64) {
	width := n.z.vectors * n.x.lanes
	if n.err != nil {
		return
	}
	n.do(n.s.Pack(n.x.constant, []schedule.PackDim{{Dim: 0}, {Dim: 1}, {Dim: 3, Factor: width}, {Dim: 2}, {Dim: 3, Factor: width, Inner: true}}))
	if n.err == nil && ahead > 0 {
		n.do(n.s.Prefetch(n.x.constant, ahead))
	}
}
