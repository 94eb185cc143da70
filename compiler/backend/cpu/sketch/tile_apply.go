package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// builder applies primitives and keeps the first error, so that a sketch reads as a list.
type builder struct {
	s   *schedule.Schedule
	err error
}

func (b *builder) do(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) split(stage, iter int, factor int64, tail schedule.Tail) (outer, inner int) {
	if b.err != nil {
		return 0, 0
	}
	outer, inner, err := b.s.Split(stage, iter, factor, tail)
	b.do(err)
	return outer, inner
}

// fuse fuses neighbouring leaves, outermost first, into one.
func (b *builder) fuse(stage int, iters []int) int {
	f := iters[0]
	for _, it := range iters[1:] {
		if b.err != nil {
			return 0
		}
		var err error
		f, err = b.s.Fuse(stage, f, it)
		b.do(err)
	}
	return f
}

func (b *builder) kind(apply func(stage, iter int) error, stage int, iters ...int) {
	for _, it := range iters {
		if b.err == nil {
			b.do(apply(stage, it))
		}
	}
}

// loops are the iterators of the unit's outer stage after tiling.
type loops struct {
	parallel int
	// block has the loops over the tiles of a block, outermost first; the last is where the reduction is computed.
	block []int
	// vectors is the loop over the vectors of tiles of a block.
	vectors int
}

// Apply implements space.Structure.
func (x *tile) Apply(s *schedule.Schedule, p tileParameters) error {
	x = x.chosen(p)
	b, u, z := &builder{s: s}, x.unit, x.sizes(p)
	b.do(x.flatten(s, u.acc))
	feeds := x.applyWidening(b, u)
	if x.dot == nil && p.feed == feedInline {
		for _, f := range feeds {
			b.do(s.Inline(f))
		}
	}
	if len(x.extents) == 0 { // one sum: there is no tile to compute it in
		return b.err
	}
	l := x.outerNest(b, u.out, z, p)
	if b.err != nil {
		return b.err
	}
	at := l.block[len(l.block)-1]
	for _, o := range slices.Backward(u.also) {
		b.do(s.ComputeAt(o, u.out, at))
		x.storeTile(b, o)
	}
	b.do(s.ComputeAt(u.acc, u.out, at))
	x.reductionNest(b, u.acc, z)
	if z.pack {
		x.applyPanels(b, u, l)
	}
	x.applyPacks(b, z, p.prefetch)
	for _, f := range feeds {
		x.applyFeed(b, u, l, f, p.feed)
	}
	x.results.apply(b, u.out, p.stream)
	return b.err
}

func (x *tile) outerNest(b *builder, out int, z sizes, p tileParameters) loops {
	const peel, shift = schedule.Peel, schedule.Shift
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
		tiles, inside = b.split(out, x.row, z.th, shift)
		rowBlock, tiles = b.split(out, tiles, z.rowTiles, peel)
		rest, tileLoops = append(rest, tiles), append(tileLoops, inside)
	}
	if x.col >= 0 {
		tiles, inside := b.split(out, col, z.tw, shift)
		if x.row < 0 {
			rowBlock, tiles = b.split(out, tiles, z.rowTiles, peel)
		}
		rest, tileLoops = append(rest, tiles), append(tileLoops, inside)
	}
	if x.vec >= 0 {
		tiles, inside := b.split(out, x.vec, z.tv*x.lanes, peel)
		var vecUnit int
		vecUnit, lane = b.split(out, inside, x.lanes, peel)
		vecBlock, vecTile = b.split(out, tiles, z.vecTiles, peel)
		tileLoops = append(tileLoops, vecUnit)
		if z.inner == 0 {
			rest = append(rest, vecTile)
		} else {
			rest = append([]int{vecTile}, rest...)
		}
	}
	blocks := []int{rowBlock, vecBlock}
	if p.outer == 1 {
		blocks = []int{vecBlock, rowBlock}
	}
	outer = append(outer, slices.DeleteFunc(blocks, func(i int) bool { return i < 0 })...)
	order := slices.Concat(outer, rest, tileLoops)
	if lane >= 0 {
		order = append(order, lane)
	}
	if b.err != nil {
		return loops{}
	}
	b.do(b.s.Reorder(out, order...))
	b.kind(b.s.Unroll, out, tileLoops...)
	if lane >= 0 {
		b.kind(b.s.Vectorize, out, lane)
	}
	l := loops{block: rest, vectors: vecTile}
	if len(outer) > 0 && b.err == nil {
		l.parallel = b.fuse(out, outer)
		b.kind(b.s.Parallel, out, l.parallel)
	}
	if len(l.block) == 0 {
		l.block = []int{l.parallel}
	}
	return l
}

// storeTile computes an output on the way to the unit's last one, a tile at a time.
func (x *tile) storeTile(b *builder, id int) {
	var tileLoops []int
	for _, k := range []int{x.row, x.col} {
		if k >= 0 {
			tileLoops = append(tileLoops, k)
		}
	}
	if x.vec >= 0 {
		vectors, lane := b.split(id, x.vec, x.lanes, schedule.Peel)
		tileLoops = append(tileLoops, vectors)
		b.kind(b.s.Vectorize, id, lane)
	}
	b.kind(b.s.Unroll, id, tileLoops...)
}

func (x *tile) reductionNest(b *builder, acc int, z sizes) {
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
		unit, lane = b.split(acc, x.vec, x.lanes, schedule.Peel)
		tileLoops = append(tileLoops, unit)
	}
	extents := slices.Clone(x.steps)
	for k := range x.reduce {
		reduction = append(reduction, len(x.extents)+k)
	}
	var innermost []int
	if last := len(reduction) - 1; x.dot != nil {
		steps, terms := b.split(acc, reduction[last], x.dot.terms, schedule.Peel)
		reduction[last], innermost = steps, append(innermost, terms)
		if b.err == nil {
			b.do(b.s.Dot(acc, terms))
		}
	}
	if last := len(reduction) - 1; z.kb > 0 {
		block, inside := b.split(acc, reduction[last], z.kb, schedule.Peel)
		reduction[last], extents[last] = inside, z.kb
		reduction = append([]int{block}, reduction...)
		extents = append([]int64{0}, extents...)
	}
	reduction, unrolled := unrollInnermost(b, acc, reduction, extents, z.ku)
	if lane >= 0 {
		innermost = append(innermost, lane)
	}
	order := slices.Concat(outer, reduction, tileLoops, innermost)
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(acc, order...))
	b.kind(b.s.Unroll, acc, reduction[len(reduction)-unrolled:]...)
	b.kind(b.s.Unroll, acc, tileLoops...)
	if lane >= 0 {
		b.kind(b.s.Vectorize, acc, lane)
	}
}

// unrollInnermost splits the innermost reduction loops so that about ku iterations can be unrolled; it returns the
// loops and how many of the last ones are to be unrolled.
func unrollInnermost(b *builder, acc int, reduction []int, extents []int64, ku int64) (all []int, unrolled int) {
	for k := len(reduction) - 1; k >= 0 && ku > 1; k-- {
		if extents[k] == 0 {
			break
		}
		if extents[k] <= ku {
			ku /= extents[k]
			unrolled++
			continue
		}
		outer, inner := b.split(acc, reduction[k], ku, schedule.Peel)
		reduction = slices.Replace(reduction, k, k+1, outer, inner)
		return reduction, unrolled + 1
	}
	return reduction, unrolled
}

// applyPacks lays each constant out in the order in which the tiles read it.
func (x *tile) applyPacks(b *builder, z sizes, ahead int64) {
	width := z.tv * x.lanes
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
		if b.err == nil {
			b.do(b.s.Pack(p.constant, dims))
		}
		if b.err == nil && ahead > 0 {
			b.do(b.s.Prefetch(p.constant, ahead))
		}
	}
}

// applyFeed computes a stage that the reduction reads: on its own, in the block, or in the tile.
func (x *tile) applyFeed(b *builder, u *unit, l loops, id int, where int64) {
	if b.err != nil || where == feedInline {
		return
	}
	g := b.s.Stages[id]
	rank := len(g.Axes)
	if rank == 0 {
		return
	}
	_, lane := b.split(id, rank-1, max(1, x.lanes), schedule.Peel)
	b.kind(b.s.Vectorize, id, lane)
	switch where {
	case feedRoot:
		if rank > 1 {
			outer := make([]int, 0, rank-1)
			for k := range rank - 1 {
				outer = append(outer, k)
			}
			b.kind(b.s.Parallel, id, b.fuse(id, outer))
		}
	case feedBlock:
		b.do(b.s.ComputeAt(id, u.out, l.parallel))
	case feedTile:
		b.do(b.s.ComputeAt(id, u.out, l.block[len(l.block)-1]))
	}
}
