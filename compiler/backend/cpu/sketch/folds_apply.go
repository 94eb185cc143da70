package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (x *folds) Apply(s *schedule.Schedule, p foldsParameters) (err error) {
	defer sketch.Catch(&err)
	b, u, z := &sketch.Builder{S: s}, x.unit, x.sizes(p)
	if z.feed == sketch.Inline {
		for _, f := range u.Feeds {
			b.Do(s.Inline(f))
		}
	}
	partial := sketch.Get(s.RFactor(u.Acc, x.terms, z.factor, schedule.Lanes))
	block, tile := x.outerNest(b, z)
	b.ComputeAt(u.Acc, u.Out, tile)
	b.ComputeAt(partial, u.Out, tile)
	x.sumNest(b, z)
	x.partialNest(b, partial, z)
	x.pack(b, z)
	for _, f := range u.Feeds {
		x.feed(b, f, z, block, tile)
	}
	return nil
}

// outerNest builds the nest of the map that ends the unit. It returns the loops over blocks and over tiles.
func (x *folds) outerNest(b *sketch.Builder, z foldsParameters) (block, tile int) {
	out := x.unit.Out
	var outer, inner []int
	for k := range x.extents {
		if k != x.out && k != x.col && k != x.row {
			outer = append(outer, k)
		}
	}
	vectors, lane := b.Split(out, x.out, z.outputs, schedule.Peel)
	tiles, column := b.Split(out, x.col, z.columns, schedule.Shift)
	blocks := []int{vectors}
	if x.row >= 0 {
		rows, row := b.Split(out, x.row, z.rows, schedule.Peel)
		if blocks, inner = append(blocks, rows), append(inner, row); z.order == 0 {
			slices.Reverse(blocks)
		}
	}
	outer, inner = append(outer, blocks...), append(inner, tiles)
	b.Do(b.S.Reorder(out, append(slices.Concat(outer, inner), column, lane)...))
	b.Mark(b.S.Unroll, out, column)
	b.Mark(b.S.Vectorize, out, lane)
	block = b.Fuse(out, outer)
	b.Mark(b.S.Parallel, out, block)
	return block, tiles
}

// sumNest adds up the lanes of a tile's partial sums. If its outputs do not fill a vector, those of a few columns
// share one.
func (x *folds) sumNest(b *sketch.Builder, z foldsParameters) {
	acc, terms := x.unit.Acc, len(x.extents)
	vector, columns := x.out, x.col
	if side := x.sideBySide(z); side > 1 {
		var column int
		columns, column = b.Split(acc, x.col, side, schedule.Peel)
		vector = b.Fuse(acc, []int{column, x.out})
	}
	b.Do(b.S.Reorder(acc, append(x.around(), columns, terms, vector)...))
	b.Mark(b.S.Unroll, acc, columns, terms)
	b.Mark(b.S.Vectorize, acc, vector)
}

// sideBySide returns how many columns share a vector of sums.
func (x *folds) sideBySide(z foldsParameters) int64 {
	if n := x.lanes / z.outputs; n > 1 && z.columns%n == 0 {
		return n
	}
	return 1
}

// around returns the axes that have extent one in a tile.
func (x *folds) around() (list []int) {
	for k := range x.extents {
		if k != x.out && k != x.col {
			list = append(list, k)
		}
	}
	return list
}

// partialNest computes the partial sums of a tile. Columns of a window share data, so their loop is the innermost
// loop of the reduction.
func (x *folds) partialNest(b *sketch.Builder, partial int, z foldsParameters) {
	axes := len(x.extents) + 1
	vectors, lane := b.Split(partial, b.Fuse(partial, []int{x.out, axes - 1}), x.lanes, schedule.Peel)
	extents := slices.Clone(x.reduce)
	extents[x.terms] /= z.factor
	var reduction []int
	for k := range x.reduce {
		reduction = append(reduction, axes+k)
	}
	if k := x.terms - 1; k >= 0 {
		reduction[k], reduction[k+1] = reduction[k+1], reduction[k]
		extents[k], extents[k+1] = extents[k+1], extents[k]
	}
	reduction, unrolled := b.UnrollInnermost(partial, reduction, extents, z.unroll)
	b.Do(b.S.Reorder(partial, append(slices.Concat(x.around(), reduction), x.col, vectors, lane)...))
	b.Mark(b.S.Unroll, partial, reduction[len(reduction)-unrolled:]...)
	b.Mark(b.S.Unroll, partial, x.col, vectors)
	b.Mark(b.S.Vectorize, partial, lane)
}

// pack lays the constants out in the order in which tiles read them.
func (x *folds) pack(b *sketch.Builder, z foldsParameters) {
	w := x.weights
	dims := []schedule.PackDim{{Dim: w.out, Factor: z.outputs}}
	for d := range w.rank {
		switch d {
		case w.out:
		case w.terms:
			dims = append(dims, schedule.PackDim{Dim: d, Factor: z.factor})
		default:
			dims = append(dims, schedule.PackDim{Dim: d})
		}
	}
	dims = append(dims, schedule.PackDim{Dim: w.out, Factor: z.outputs, Inner: true}, schedule.PackDim{Dim: w.terms, Factor: z.factor, Inner: true})
	b.Do(b.S.Pack(w.constant, dims))
}

// feed computes a stage that the reduction reads: on its own, in the block, or in the tile.
func (x *folds) feed(b *sketch.Builder, id int, z foldsParameters, block, tile int) {
	if z.feed == sketch.Inline {
		return
	}
	rank := len(b.S.Stages[id].Axes)
	_, lane := b.Split(id, rank-1, x.lanes, schedule.Peel)
	b.Mark(b.S.Vectorize, id, lane)
	switch z.feed {
	case sketch.Alone:
		b.Mark(b.S.Parallel, id, b.FuseAxes(id, rank-1))
	case sketch.InBlock:
		b.ComputeAt(id, x.unit.Out, block)
	case sketch.InTile:
		b.ComputeAt(id, x.unit.Out, tile)
	}
}
