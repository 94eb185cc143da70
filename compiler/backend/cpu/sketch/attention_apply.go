package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// These select where keys and values are laid out anew.
const (
	layNowhere = iota // they are read in place
	layAlone
	layInBatch
	readAlong // keys are read in place, with the terms of a score in lanes
)

// family returns the schedules of the attention, including those in tiles if m is not nil.
func (a *attention) family(m *attentionMatrices) searchspace.Family {
	type p = attentionParameters
	rows := sketch.AtMost(a.M, 1, 2, 3, 4, 6, 7, 8, 12, 14)
	if m != nil {
		rows = append(rows[:len(rows):len(rows)], schedule.TileRows, 2*schedule.TileRows)
		rows = slices.DeleteFunc(rows, func(n int64) bool { return n > a.M })
		rows = slices.Compact(rows)
	}
	k := &searchspace.Sketch[p]{
		Open: searchspace.WithChoices([]searchspace.Parameter[p]{
			sketch.Knob("th", func(p *p) *int64 { return &p.rows }, rows...),
			sketch.Knob("tv", func(p *p) *int64 { return &p.vectors }, sketch.AtMost(sketch.CeilDiv(min(a.N, a.E), a.lanes), 1, 2, 3, 4)...),
			sketch.Knob("block", func(p *p) *int64 { return &p.block }, sketch.AtMost(a.M, 8, 16, 32, 64, 128)...),
			sketch.Unrolling(sketch.Knob("ku", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(a.D, 1, 2, 4, 8)...)),
			sketch.Knob("keys", func(p *p) *int64 { return &p.keys }, a.places(a.Keys)...),
			sketch.Knob("values", func(p *p) *int64 { return &p.values }, a.places(a.Values)...),
		}),
		Variants: []searchspace.Variant[p]{{By: searchspace.Direct, Structure: a}},
		Good:     a.seeds(),
	}
	k.Fixed.keys, k.Fixed.values = a.onlyPlace(a.Keys), a.onlyPlace(a.Values)
	if m != nil {
		k.Variants = append(k.Variants, searchspace.Variant[p]{By: AMXBF16, Structure: m})
		for _, t := range [][2]int64{{32, 2}, {16, 2}, {16, 4}} {
			for _, block := range []int64{32, 64} {
				k.Good = append(k.Good, searchspace.Candidate[p]{By: AMXBF16, Parameters: p{rows: t[0], vectors: t[1], block: block, unroll: 1,
					keys: a.onlyPlace(a.Keys), values: a.onlyPlace(a.Values)}})
			}
		}
	}
	return k
}

// places returns where a stage may be computed.
func (a *attention) places(id int) []int64 {
	if id < 0 {
		return nil
	}
	places := []int64{layAlone}
	if a.Straight[id] {
		places = []int64{layNowhere, layAlone}
	}
	if len(a.Batch) > 0 && !a.Single && !slices.ContainsFunc(a.Batch, func(k int) bool { return a.Dims[id][k] < 0 }) {
		places = append(places, layInBatch)
	}
	if id == a.Keys && a.along {
		places = append(places, readAlong)
	}
	return places
}

// onlyPlace returns where a stage without a choice is computed.
func (a *attention) onlyPlace(id int) int64 {
	if places := a.places(id); len(places) > 0 {
		return places[0]
	}
	return layNowhere
}

// tileOf returns the rows and vectors of a tile, and the rows of a block, which is a whole number of tiles.
func (a *attention) tileOf(p attentionParameters) (th, tv, block int64) {
	th = min(max(1, p.rows), a.M)
	block = min(max(th, p.block), a.M)
	return th, max(1, p.vectors), block / th * th
}

// Legal implements searchspace.Structure.
func (a *attention) Legal(p attentionParameters) error {
	th, tv, _ := a.tileOf(p)
	return RegisterTile{Rows: th, Vectors: tv, Unroll: max(1, p.unroll)}.Legal(a.target)
}

// softmaxCycles is the cycles of the softmax per vector, acrossCycles those per row, and sumOfLanesCycles those of
// the sum of a vector's lanes.
const softmaxCycles, acrossCycles, sumOfLanesCycles = 11, 60, 1

// Cost implements searchspace.Structure. It adds the products at the rate of the register tiles, the softmax, the
// layout changes, and the imbalance of workers.
func (a *attention) Cost(p attentionParameters) float64 {
	t := a.target
	th, tv, block := a.tileOf(p)
	acc := float64(th * tv)
	loads := float64(th+tv) / 2
	step := microarch.Overlap(acc/2, loads, microarch.ResultLatency) + 0.25/float64(max(1, p.unroll))
	if int64(acc)+tv+1 >= int64(t.CPU.VectorRegisters) {
		step *= 1.1 // the loop has no spare registers
	}
	width := tv * a.lanes
	tiles := func(columns int64) float64 {
		return float64(sketch.CeilDiv(block, th) * sketch.CeilDiv(columns, width))
	}
	cycles := tiles(a.E) * (float64(a.N)*step + 3*acc)
	if p.keys == readAlong {
		cycles += float64(block*a.N) * (float64(sketch.CeilDiv(a.D, a.lanes)) + sumOfLanesCycles)
	} else {
		cycles += tiles(a.N) * (float64(a.D)*step + 3*acc)
	}
	if p.values == layNowhere { // rows are far apart and map to few cache sets
		cycles *= 1.01
	}
	cycles += float64(block) * (float64(sketch.CeilDiv(a.N, a.lanes))*softmaxCycles + acrossCycles)
	if 4*block*a.N > t.CPU.L2Bytes/4 {
		cycles *= 1.2
	}
	blocks, workers := sketch.CeilDiv(a.M, block), microarch.Workers(t)
	chunks := a.Batches * blocks
	lay := a.layCycles(p)
	if a.inBatch(p) {
		return float64(sketch.CeilDiv(a.Batches, workers)) * (float64(blocks)*cycles + lay)
	}
	return float64(sketch.CeilDiv(chunks, workers))*cycles + 1.2*lay*float64(a.Batches)/float64(workers)
}

// layCycles returns the cycles of laying out the keys and values of a batch.
func (a *attention) layCycles(p attentionParameters) float64 {
	columns := int64(0)
	if p.keys != layNowhere && p.keys != readAlong {
		columns += a.D
	}
	if p.values != layNowhere {
		columns += a.E
	}
	return float64(a.N) * float64(columns) / float64(a.lanes) * 4
}

// seeds returns register tiles that are known to be good, with a few block sizes.
func (a *attention) seeds() (list []searchspace.Candidate[attentionParameters]) {
	tiles := [][2]int64{{6, 2}, {4, 3}} // AVX2
	switch registers := a.target.CPU.VectorRegisters; {
	case registers >= 32 && a.target.CPU.VectorBytes >= 64: // AVX-512
		tiles = [][2]int64{{14, 2}, {12, 2}, {7, 4}, {6, 4}}
	case registers >= 32: // Neon
		tiles = [][2]int64{{8, 3}, {6, 4}, {7, 3}}
	}
	for _, t := range tiles {
		for _, p := range []attentionParameters{
			{block: 8, unroll: 4, keys: layAlone, values: layNowhere},
			{block: 16, unroll: 4, keys: layInBatch, values: layInBatch},
			{block: 32, unroll: 4, keys: layAlone, values: layAlone},
			{block: 8, unroll: 4, keys: readAlong, values: layNowhere},
		} {
			p.rows, p.vectors = t[0], t[1]
			list = append(list, searchspace.Candidate[attentionParameters]{By: searchspace.Direct, Parameters: p})
		}
	}
	return list
}

// inBatch reports whether each batch belongs to a single worker, because keys or values are laid out per batch.
func (a *attention) inBatch(p attentionParameters) bool {
	return p.keys == layInBatch || p.values == layInBatch
}

// Apply implements searchspace.Structure.
func (a *attention) Apply(s *schedule.Schedule, p attentionParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	th, tv, block := a.tileOf(p)
	if (p.keys == layNowhere || p.keys == readAlong) && a.Keys >= 0 {
		b.Do(s.Inline(a.Keys))
	}
	if p.values == layNowhere && a.Values >= 0 {
		b.Do(s.Inline(a.Values))
	}
	batchAt, at, tileAt := a.outerNest(b, p, th, tv, block)
	b.ComputeAt(a.Mixed, a.Out, tileAt)
	a.productNest(b, a.Mixed, p)
	a.softmax(b, at)
	if p.keys == readAlong {
		a.scoresAlong(b, at)
		a.lay(b, a.Values, p.values, batchAt)
		return nil
	}
	b.ComputeAt(a.Masked, a.Out, at)
	tileAt = a.scoresNest(b, th, tv)
	b.ComputeAt(a.Scores, a.Masked, tileAt)
	a.productNest(b, a.Scores, p)
	a.lay(b, a.Keys, p.keys, batchAt)
	a.lay(b, a.Values, p.values, batchAt)
	return nil
}

// scoresAlong computes the scores of a block of rows one by one, each in vectors of its terms.
func (a *attention) scoresAlong(b *sketch.Builder, at int) {
	r := RowwiseNests{Lanes: a.lanes, Dims: map[int][]int{a.Masked: append(a.batchOf(a.Masked), a.Dims[a.Masked][a.Row])}}
	p := RowwiseParameters{Partials: 4, Unroll: 4}
	r.Map(b, b.S.Stages[a.Masked], p)
	b.ComputeAt(a.Masked, a.Out, at)
	g := b.S.Stages[a.Scores]
	row, key := a.Dims[a.Scores][a.Row], len(g.Axes)-1
	partials := r.Reduce(b, g, 0, p)
	b.Do(b.S.Reorder(a.Scores, key, row)) // each key is read once for all rows
	for _, partial := range partials {
		b.ComputeAt(partial, a.Scores, row)
	}
	b.ComputeAt(a.Scores, a.Out, at)
}

// outerNest divides the result into blocks and tiles. It returns the loops over batches, over blocks and over a
// block's tiles.
func (a *attention) outerNest(b *sketch.Builder, p attentionParameters, th, tv, block int64) (batchAt, at, tileAt int) {
	blocks, rows := b.Split(a.Out, a.Row, block, schedule.Shift)
	tiles, row := b.Split(a.Out, rows, th, schedule.Peel)
	columns, unit, lane := a.columns(b, a.Out, a.Column, a.E, tv)
	b.Do(b.S.Reorder(a.Out, slices.Concat(a.Batch, []int{blocks, columns, tiles, row, unit, lane})...))
	b.Mark(b.S.Unroll, a.Out, a.writtenOut(row, unit)...)
	b.Mark(b.S.Vectorize, a.Out, lane)
	if a.inBatch(p) {
		batchAt, at = b.Fuse(a.Out, a.Batch), blocks
		b.Mark(b.S.Parallel, a.Out, batchAt)
	} else {
		at = b.Fuse(a.Out, append(slices.Clone(a.Batch), blocks))
		b.Mark(b.S.Parallel, a.Out, at)
	}
	return batchAt, at, tiles
}

// columns divides an axis into tiles of tv vectors. If there are several, the last tile is shifted back to be full.
func (a *attention) columns(b *sketch.Builder, stage, axis int, extent, tv int64) (tiles, unit, lane int) {
	tail := schedule.Shift
	if extent < tv*a.lanes {
		tail = schedule.Peel
	}
	tiles, inside := b.Split(stage, axis, tv*a.lanes, tail)
	unit, lane = b.Split(stage, inside, a.lanes, schedule.Peel)
	return tiles, unit, lane
}

// writtenOut returns the unrolled loops of a tile: over its rows and over its vectors.
func (a *attention) writtenOut(rows, vectors int) []int {
	if a.rolled {
		return []int{vectors}
	}
	return []int{rows, vectors}
}

// scoresNest divides a block of scores into tiles and returns the loop over them.
func (a *attention) scoresNest(b *sketch.Builder, th, tv int64) int {
	g := b.S.Stages[a.Masked]
	batch, row, last := a.batchOf(a.Masked), a.Dims[a.Masked][a.Row], len(g.Axes)-1
	tiles, inside := b.Split(a.Masked, row, th, schedule.Peel)
	columns, unit, lane := a.columns(b, a.Masked, last, a.N, tv)
	b.Do(b.S.Reorder(a.Masked, slices.Concat(batch, []int{columns, tiles, inside, unit, lane})...))
	b.Mark(b.S.Unroll, a.Masked, a.writtenOut(inside, unit)...)
	b.Mark(b.S.Vectorize, a.Masked, lane)
	return tiles
}

func (a *attention) batchOf(id int) []int {
	var list []int
	for _, k := range a.Batch {
		list = append(list, a.Dims[id][k])
	}
	return list
}

// productNest keeps a tile's sums in registers.
func (a *attention) productNest(b *sketch.Builder, id int, p attentionParameters) {
	axes := len(b.S.Stages[id].Axes)
	unit, lane := b.Split(id, axes-1, a.lanes, schedule.Peel)
	steps := []int{axes}
	if ku := min(p.unroll, b.S.Stages[id].Reduce[0].Extent); ku > 1 {
		outer, inner := b.Split(id, axes, ku, schedule.Peel)
		steps = []int{outer, inner}
		b.Mark(b.S.Unroll, id, inner)
	}
	row := a.Dims[id][a.Row]
	b.Do(b.S.Reorder(id, slices.Concat(a.batchOf(id), steps, []int{row, unit, lane})...))
	b.Mark(b.S.Unroll, id, row, unit)
	b.Mark(b.S.Vectorize, id, lane)
}

// softmax computes the stages between the products for a block of rows.
func (a *attention) softmax(b *sketch.Builder, at int) {
	r := RowwiseNests{Lanes: a.lanes}
	p := RowwiseParameters{Partials: 4, Unroll: 4}
	for _, id := range []int{a.Total, a.Sum, a.Exp, a.Largest} {
		g := b.S.Stages[id]
		switch id {
		case a.Exp:
			r.Dims = map[int][]int{id: append(a.batchOf(id), a.Dims[id][a.Row])}
			r.Map(b, g, p)
		case a.Sum, a.Largest:
			for _, partial := range r.Reduce(b, g, 0, p) {
				b.ComputeAt(partial, id, a.Dims[id][a.Row])
			}
		}
		b.ComputeAt(id, a.Out, at)
	}
}

// lay computes the stage that lays an operand out. Vectors are stored whole, even if their lanes are gathered.
func (a *attention) lay(b *sketch.Builder, id int, where int64, batchAt int) {
	if id < 0 || where == layNowhere {
		return
	}
	axes := len(b.S.Stages[id].Axes)
	vectors, lane := b.Split(id, axes-1, a.lanes, schedule.Peel)
	batch := sketch.Axes(axes - 2) // all but rows and columns
	order := slices.Concat(batch, []int{vectors, axes - 2, lane})
	if a.Straight[id] {
		order = slices.Concat(batch, []int{axes - 2, vectors, lane})
	}
	b.Do(b.S.Reorder(id, order...))
	b.Mark(b.S.Vectorize, id, lane)
	if where == layInBatch {
		b.ComputeAt(id, a.Out, batchAt)
	} else {
		b.Mark(b.S.Parallel, id, b.Fuse(id, append(batch, order[len(batch)])))
	}
}
