package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// winogradNests builds the loop nests of one schedule.
type winogradNests struct {
	*sketch.Builder
	x   *tile
	z   winogradSizes
	ids schedule.WinogradStages
	// out is the map that ends the unit; block is the loop over its blocks of tiles.
	out, block int
}

// Apply implements searchspace.Structure.
func (x *tile) Apply(s *schedule.Schedule, p winogradParameters) (err error) {
	defer sketch.Catch(&err)
	b, u, z := &sketch.Builder{S: s}, x.unit, x.sizes(p)
	as := array.Invalid
	if x.pairs {
		as = array.BFloat16
	}
	ids := sketch.Get(s.WinogradAs(u.Acc, x.my, x.mx, as))
	for _, f := range u.Feeds {
		b.Do(s.Inline(f))
	}
	b.Do(s.Inline(u.Acc))
	n := &winogradNests{Builder: b, x: x, z: z, ids: ids, out: u.Out}
	tile := sketch.Get(s.CacheWrite(ids.Product))
	n.alignStorage()
	n.output(x.my, x.mx)
	n.product(tile)
	n.data()
	n.image(p.image)
	n.weights(p.prefetch)
	return nil
}

// terms returns how many terms of the product are multiplied at once.
func (x *tile) terms() int64 {
	if x.pairs {
		return 2
	}
	return 1
}

// alignStorage keeps rows of the same position of different tiles in different cache sets.
func (n *winogradNests) alignStorage() {
	line := n.x.line
	if inData := line * n.x.terms(); n.x.ic%inData == 0 {
		n.Do(n.S.StorageAlign(n.ids.Data, inData))
	}
	if n.x.oc%line == 0 {
		n.Do(n.S.StorageAlign(n.ids.Product, line))
	}
}

// output builds the nest of the map that ends the unit: for each tile and vector of channels, the transform of the
// product and the my x mx outputs, unrolled.
//
//	parallel over (images, blocks of tiles)
//	  [image, data and product of the block]
//	  for tiles of the block, vectors of channels
//	    rows, result = Aᵀ product A
//	    out = ...                                        my x mx unrolled, vectorized
func (n *winogradNests) output(my, mx int64) {
	const peel = schedule.Peel
	x := n.x
	rows, row := n.Split(n.out, x.y, my, peel)
	columns, column := n.Split(n.out, x.x, mx, peel)
	vectors, lane := n.Split(n.out, x.c, x.lanes, peel)
	outer := slices.Clone(x.batch)
	var rest []int
	switch {
	case !n.z.blocked():
		outer, rest = append(outer, rows), []int{columns}
	case x.openWidth:
		outer = append(outer, rows, columns)
	default:
		var rowBlocks, columnBlocks int
		rowBlocks, rows = n.Split(n.out, rows, n.z.rows, peel)
		columnBlocks, columns = n.Split(n.out, columns, n.z.columns, peel)
		outer, rest = append(outer, rowBlocks, columnBlocks), []int{rows, columns}
	}
	n.Do(n.S.Reorder(n.out, slices.Concat(outer, rest, []int{vectors, row, column, lane})...))
	n.Mark(n.S.Unroll, n.out, row, column)
	n.Mark(n.S.Vectorize, n.out, lane)
	if x.openWidth && n.z.blocked() {
		n.block, _ = n.Split(n.out, n.FuseHeld(n.out, outer), n.z.columns, peel)
	} else {
		n.block = n.Fuse(n.out, outer)
	}
	n.Mark(n.S.Parallel, n.out, n.block)
	n.ComputeAt(n.ids.Result, n.out, vectors)
	n.ComputeAt(n.ids.Rows, n.out, vectors)
	n.transform(n.ids.Result, 1, 2)
	n.Mark(n.S.Unroll, n.ids.Result, 1)
	n.transform(n.ids.Rows, 2, 1)
	n.Mark(n.S.Unroll, n.ids.Rows, 2)
}

// transform orders the nest of a stage [T, a, b, C]: for each tile and vector of channels all positions, in the given
// order of the axes. It unrolls the second axis and returns the loop over vectors. The first stays a loop:
// partitioning makes about ten versions of the data's transform at the borders of an image, and unrolled they would
// take longer to compile than the rest of a kernel.
func (n *winogradNests) transform(id, first, second int) (vectors int) {
	vectors, lane := n.Split(id, 3, n.x.lanes, schedule.Peel)
	n.Do(n.S.Reorder(id, 0, vectors, first, second, lane))
	n.Mark(n.S.Unroll, id, second)
	n.Mark(n.S.Vectorize, id, lane)
	return vectors
}

// attach computes a stage in the block or, without blocks, on its own.
func (n *winogradNests) attach(id int, parallel func()) {
	if n.z.blocked() {
		n.ComputeAt(id, n.out, n.block)
	} else {
		parallel()
	}
}

// image computes the padded activation where the knob selects.
func (n *winogradNests) image(where int64) {
	id := n.ids.Image
	if where == sketch.Inline {
		n.Do(n.S.Inline(id))
		return
	}
	rank := len(n.S.Stages[id].Axes)
	_, lane := n.Split(id, rank-1, n.x.lanes, schedule.Peel)
	n.Mark(n.S.Vectorize, id, lane)
	if where == sketch.InBlock && n.x.imageInBlocks(n.z) {
		n.ComputeAt(id, n.out, n.block)
		return
	}
	n.Mark(n.S.Parallel, id, n.FuseAxes(id, rank-2))
}

// data computes Bᵀ image B.
func (n *winogradNests) data() {
	id := n.ids.Data
	vectors := n.transform(id, 1, 2)
	n.ComputeAt(n.ids.Columns, id, vectors)
	n.transform(n.ids.Columns, 2, 1)
	n.attach(id, func() { n.Mark(n.S.Parallel, id, 0) })
}

// product multiplies register tiles of wt tiles x wv vectors of output channels, position by position.
func (n *winogradNests) product(tile int) {
	const peel = schedule.Peel
	id, z, lanes := n.ids.Product, n.z, n.x.lanes
	tiles, inTile := n.Split(id, 0, z.tiles, schedule.Shift)
	vectors, inside := n.Split(id, 3, z.vectors*lanes, peel)
	unit, lane := n.Split(id, inside, lanes, peel)
	blocks, vectors := n.Split(id, vectors, z.vecTiles, peel)
	n.Do(n.S.Reorder(id, slices.Concat([]int{1, 2, blocks, vectors, tiles}, []int{inTile, unit, lane})...))
	n.Mark(n.S.Unroll, id, inTile, unit)
	n.Mark(n.S.Vectorize, id, lane)
	n.attach(id, func() { n.Mark(n.S.Parallel, id, n.Fuse(id, []int{1, 2, blocks})) })
	n.ComputeAt(tile, id, tiles)
	n.accumulate(tile)
}

func (n *winogradNests) accumulate(id int) {
	unit, lane := n.Split(id, 3, n.x.lanes, schedule.Peel)
	steps, innermost := 4, []int{lane}
	if n.x.pairs {
		var terms int
		steps, terms = n.Split(id, steps, n.x.terms(), schedule.Peel)
		innermost = []int{terms, lane}
		n.Do(n.S.Dot(id, terms))
	}
	reduction, unrolled := n.UnrollInnermost(id, []int{steps}, []int64{n.x.ic / n.x.terms()}, n.z.ku)
	n.Do(n.S.Reorder(id, slices.Concat([]int{1, 2}, reduction, []int{0, unit}, innermost)...))
	n.Mark(n.S.Unroll, id, reduction[len(reduction)-unrolled:]...)
	n.Mark(n.S.Unroll, id, 0, unit)
	n.Mark(n.S.Vectorize, id, lane)
}

// weights lays the transformed constant out in the order in which the register tiles read it.
func (n *winogradNests) weights(ahead int64) {
	width := n.z.vectors * n.x.lanes
	dims := []schedule.PackDim{{Dim: 0}, {Dim: 1}, {Dim: 3, Factor: width}, {Dim: 2}, {Dim: 3, Factor: width, Inner: true}}
	if terms := n.x.terms(); n.x.pairs {
		dims[3].Factor = terms
		dims = append(dims, schedule.PackDim{Dim: 2, Factor: terms, Inner: true})
	}
	n.Do(n.S.Pack(n.x.constant, dims))
	if ahead > 0 {
		n.Do(n.S.Prefetch(n.x.constant, ahead))
	}
}
