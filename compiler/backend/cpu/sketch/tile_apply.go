package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// loops holds the iterators of the unit's outer stage after tiling.
type loops struct {
	parallel int
	// block holds the loops over the tiles of a block, outermost first. The reduction is computed in the last.
	block []int
	// vectors is the loop over the vectors of tiles of a block.
	vectors int
}

// Apply implements searchspace.Structure.
func (x *Tile) Apply(s *schedule.Schedule, p TileParameters) (err error) {
	defer sketch.Catch(&err)
	x = x.chosen(p)
	b, u, z := &sketch.Builder{S: s}, x.unit, x.sizes(p)
	if len(x.joint) > 0 {
		b.Do(s.Flatten(u.Acc, x.joint...))
	}
	feeds := x.applyWidening(b, u, p)
	if x.dot == nil && p.Feed == sketch.Inline {
		for _, f := range feeds {
			b.Do(s.Inline(f))
		}
	}
	if len(x.extents) == 0 { // a single sum has no tile to be computed in
		return nil
	}
	l := x.outerNest(b, u.Out, z, p)
	at := l.block[len(l.block)-1]
	for _, o := range slices.Backward(u.Also) {
		b.ComputeAt(o, u.Out, at)
		x.storeTile(b, o, z)
	}
	b.ComputeAt(u.Acc, u.Out, at)
	x.reductionNest(b, u.Acc, z)
	if z.pack {
		x.applyPanels(b, u, l)
	}
	x.applyPacks(b, z, p.Prefetch)
	for _, f := range feeds {
		x.applyFeed(b, u, l, f, p.Feed)
	}
	x.results.Apply(b, u.Out, p.Stream)
	return nil
}

func (x *Tile) outerNest(b *sketch.Builder, out int, z tileSizes, p TileParameters) loops {
	const peel = schedule.Peel
	var outer, rest, tileLoops []int
	for k := range x.extents {
		if k != x.vec && k != x.col && k != x.row && !slices.Contains(x.joint, k) {
			outer = append(outer, k)
		}
	}
	col := x.col
	if len(x.joint) > 0 {
		col = x.fuseJoint(b, out, outer)
	}
	var rowBlock, vecBlock, vecTile, lane = -1, -1, -1, -1
	if x.row >= 0 {
		var tiles, inside int
		tiles, inside = b.Split(out, x.row, z.th, schedule.Shift)
		rowBlock, tiles = b.Split(out, tiles, z.rowTiles, peel)
		rest, tileLoops = append(rest, tiles), append(tileLoops, inside)
	}
	if x.col >= 0 {
		tiles, inside := b.Split(out, col, z.tw, x.tail(col, z))
		if x.row < 0 {
			rowBlock, tiles = b.Split(out, tiles, z.rowTiles, peel)
		}
		rest, tileLoops = append(rest, tiles), append(tileLoops, inside)
	}
	if x.vec >= 0 {
		tiles, inside := b.Split(out, x.vec, x.width(z.tv), peel)
		var vecUnit int
		vecUnit, lane = b.Split(out, inside, x.lanes, peel)
		vecBlock, vecTile = b.Split(out, tiles, z.vecTiles, peel)
		tileLoops = append(tileLoops, vecUnit)
		if z.inner == 0 {
			rest = append(rest, vecTile)
		} else {
			rest = append([]int{vecTile}, rest...)
		}
	}
	blocks := []int{rowBlock, vecBlock}
	if p.Outer == 1 {
		blocks = []int{vecBlock, rowBlock}
	}
	outer = append(outer, slices.DeleteFunc(blocks, func(i int) bool { return i < 0 })...)
	order := slices.Concat(outer, rest, tileLoops)
	if lane >= 0 {
		order = append(order, lane)
	}
	b.Do(b.S.Reorder(out, order...))
	b.Mark(b.S.Unroll, out, z.unrolled(tileLoops)...)
	if lane >= 0 {
		b.Mark(b.S.Vectorize, out, lane)
	}
	l := loops{block: rest, vectors: vecTile}
	if len(outer) > 0 {
		l.parallel = b.Fuse(out, outer)
		b.Mark(b.S.Parallel, out, l.parallel)
	}
	if len(l.block) == 0 {
		l.block = []int{l.parallel}
	}
	return l
}

// fitTiles is the maximum number of tiles along an open axis, in the smallest timed execution, of which the last one
// is fitted. Of more tiles, it is a small part, and the code for each of its sizes does not pay.
const fitTiles = 16

// fits reports whether the last tile along an axis is fitted to the extent of an execution: that of rows of a product.
// Tiles of images are many.
func (x *Tile) fits(axis int, z tileSizes) bool {
	if !x.isOpenColumn(axis) || x.matrices != nil || x.dot != nil && x.dot.squares {
		return false
	}
	return z.tw > 1 && x.timed[0][axis] <= fitTiles*z.tw
}

// isOpenColumn reports whether an axis is open and the only one of the positions.
func (x *Tile) isOpenColumn(axis int) bool {
	return x.timed != nil && x.row < 0 && axis == x.col && x.limited[axis]
}

// tail returns how the last tile along an axis is computed.
func (x *Tile) tail(axis int, z tileSizes) schedule.Tail {
	if x.fits(axis, z) {
		return schedule.Fit
	}
	return schedule.Shift
}

// storeTile computes an intermediate output, a tile at a time.
func (x *Tile) storeTile(b *sketch.Builder, id int, z tileSizes) {
	var tileLoops []int
	for _, k := range []int{x.row, x.col} {
		if k >= 0 {
			tileLoops = append(tileLoops, k)
		}
	}
	if x.vec >= 0 {
		vectors, lane := b.Split(id, x.vec, x.lanes, schedule.Peel)
		tileLoops = append(tileLoops, vectors)
		b.Mark(b.S.Vectorize, id, lane)
	}
	b.Mark(b.S.Unroll, id, z.unrolled(tileLoops)...)
}

// unrolled returns the unrolled loops of a tile. The last loop is over its vectors.
func (z tileSizes) unrolled(tileLoops []int) []int {
	if z.rolled {
		return tileLoops[len(tileLoops)-1:]
	}
	return tileLoops
}

func (x *Tile) reductionNest(b *sketch.Builder, acc int, z tileSizes) {
	if x.matrices != nil {
		x.matrixNest(b, acc)
		return
	}
	var outer, tileLoops, reduction []int
	lane := -1
	for k := range x.extents {
		switch k {
		case x.row, x.col:
			tileLoops = append(tileLoops, k)
		case x.vec:
		default:
			outer = append(outer, k)
		}
	}
	if x.vec >= 0 {
		var unit int
		unit, lane = b.Split(acc, x.vec, x.lanes, schedule.Peel)
		tileLoops = append(tileLoops, unit)
	}
	var extents []int64
	for _, k := range x.order {
		reduction, extents = append(reduction, len(x.extents)+k), append(extents, x.steps[k])
	}
	var innermost []int
	if x.dot != nil {
		last := slices.Index(x.order, len(x.order)-1)
		steps, terms := b.Split(acc, reduction[last], x.dot.terms, schedule.Peel)
		reduction[last], innermost = steps, append(innermost, terms)
		b.Do(b.S.Dot(acc, terms))
	}
	if last := len(reduction) - 1; z.kb > 0 {
		block, inside := b.Split(acc, reduction[last], z.kb, schedule.Peel)
		reduction[last], extents[last] = inside, z.kb
		reduction = append([]int{block}, reduction...)
		extents = append([]int64{0}, extents...)
	}
	reduction, unrolled := b.UnrollInnermost(acc, reduction, extents, z.ku)
	if lane >= 0 {
		innermost = append(innermost, lane)
	}
	order := slices.Concat(outer, reduction, tileLoops, innermost)
	b.Do(b.S.Reorder(acc, order...))
	b.Mark(b.S.Unroll, acc, reduction[len(reduction)-unrolled:]...)
	b.Mark(b.S.Unroll, acc, tileLoops...)
	if lane >= 0 {
		b.Mark(b.S.Vectorize, acc, lane)
	}
	x.trim(b, acc, z)
}

// applyPacks lays each constant out in the order in which the tiles read it.
func (x *Tile) applyPacks(b *sketch.Builder, z tileSizes, ahead int64) {
	width := x.width(z.tv)
	for _, p := range x.packs {
		dims := []schedule.PackDim{{Dim: p.dim, Factor: width}}
		for d, phases := range p.phases {
			if phases > 1 && d != p.dim && d != p.last {
				dims = append(dims, schedule.PackDim{Dim: d, Factor: phases, Inner: true})
			}
		}
		if z.kb > 0 && p.last >= 0 {
			dims = append(dims, schedule.PackDim{Dim: p.last, Factor: z.kb})
		}
		for d := range p.rank {
			switch {
			case d == p.dim:
			case d == p.last && x.dot != nil:
				dims = append(dims, schedule.PackDim{Dim: d, Factor: x.dot.terms})
			case d == p.last && z.kb > 0:
				dims = append(dims, schedule.PackDim{Dim: d, Factor: z.kb, Inner: true})
			case d != p.last && p.phases[d] > 1:
				dims = append(dims, schedule.PackDim{Dim: d, Factor: p.phases[d]})
			default:
				dims = append(dims, schedule.PackDim{Dim: d})
			}
		}
		dims = append(dims, schedule.PackDim{Dim: p.dim, Factor: width, Inner: true})
		if x.dot != nil {
			dims = append(dims, schedule.PackDim{Dim: p.last, Factor: x.dot.terms, Inner: true})
		}
		b.Do(b.S.Pack(p.constant, dims))
		if ahead > 0 {
			b.Do(b.S.Prefetch(p.constant, ahead))
		}
	}
}

// applyFeed computes a stage that the reduction reads: on its own, in the block, or in the tile.
func (x *Tile) applyFeed(b *sketch.Builder, u sketch.Unit, l loops, id int, where int64) {
	if where == sketch.Inline {
		return
	}
	g := b.S.Stages[id]
	rank := len(g.Axes)
	if rank == 0 {
		return
	}
	lanes := max(1, x.lanes)
	if x.matrices != nil || x.turns() {
		lanes = int64(x.target.CPU.VectorBytes) / g.Tensor.DType.Bytes()
	}
	_, lane := b.Split(id, rank-1, lanes, schedule.Peel)
	b.Mark(b.S.Vectorize, id, lane)
	switch where {
	case sketch.Alone:
		if rank > 1 {
			b.Mark(b.S.Parallel, id, b.FuseAxes(id, rank-1))
		}
	case sketch.InBlock:
		b.ComputeAt(id, u.Out, l.parallel)
	case sketch.InTile:
		b.ComputeAt(id, u.Out, l.block[len(l.block)-1])
	}
}
