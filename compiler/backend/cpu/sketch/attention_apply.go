package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Where keys and values are laid out anew.
const (
	layNowhere = iota // they are read as they lie
	layAlone
	layInBatch
)

func (a *attention) knobs(*target.Target) []space.Knob {
	knobs := []space.Knob{
		{Name: "th", Values: atMost(a.m, 1, 2, 3, 4, 6, 7, 8, 12, 14)},
		{Name: "tv", Values: atMost(ceilDiv(min(a.n, a.e), a.lanes), 1, 2, 3, 4)},
		{Name: "block", Values: atMost(a.m, 8, 16, 32, 64, 128)},
		{Name: "ku", Values: atMost(a.d, 1, 2, 4, 8)},
		{Name: "keys", Values: a.places(a.keys)},
		{Name: "values", Values: a.places(a.values)},
	}
	return slices.DeleteFunc(knobs, func(k space.Knob) bool { return len(k.Values) < 2 })
}

// places are where a stage may be computed.
func (a *attention) places(id int) []int64 {
	if id < 0 {
		return nil
	}
	places := []int64{layAlone}
	if a.straight[id] {
		places = []int64{layNowhere, layAlone}
	}
	if len(a.batch) > 0 {
		places = append(places, layInBatch)
	}
	return places
}

// place is the setting of a stage's knob, or its only choice.
func (a *attention) place(set space.Settings, name string, id int) int64 {
	if p, ok := set[name]; ok {
		return p
	}
	if places := a.places(id); len(places) > 0 {
		return places[0]
	}
	return layNowhere
}

// tileOf are the rows of a tile, its vectors, and the rows of a block, which are whole tiles.
func (a *attention) tileOf(set space.Settings) (th, tv, block int64) {
	th = min(max(1, set["th"]), a.m)
	block = min(max(th, set["block"]), a.m)
	return th, max(1, set["tv"]), block / th * th
}

func (a *attention) legal(t *target.Target, set space.Settings) error {
	th, tv, _ := a.tileOf(set)
	return registerTile{rows: th, vectors: tv, unroll: max(1, set["ku"])}.legal(t)
}

// cost estimates cycles: the products as register tiles allow, the softmax, laying out, and the imbalance of workers.
func (a *attention) cost(t *target.Target, set space.Settings) float64 {
	th, tv, block := a.tileOf(set)
	acc := float64(th * tv)
	loads := float64(th+tv) / 2
	step := max(acc/2, loads, 4.5) + 0.15*min(acc/2, loads) + 0.25/float64(max(1, set["ku"]))
	if int64(acc)+tv+1 >= int64(t.CPU.VectorRegisters) {
		step *= 1.1 // nothing is left for what else the loop needs
	}
	width := tv * a.lanes
	tiles := func(columns int64) float64 { return float64(ceilDiv(block, th) * ceilDiv(columns, width)) }
	const softmax, across = 11, 60 // cycles a vector, and a row
	cycles := tiles(a.n)*(float64(a.d)*step+3*acc) + tiles(a.e)*(float64(a.n)*step+3*acc)
	if a.place(set, "values", a.values) == layNowhere { // rows lie far apart, in few sets of the cache
		cycles *= 1.01
	}
	cycles += float64(block) * (float64(ceilDiv(a.n, a.lanes))*softmax + across)
	if 4*block*a.n > t.CPU.L2Bytes/4 {
		cycles *= 1.2
	}
	blocks, workers := ceilDiv(a.m, block), int64(max(1, t.CPU.Threads))
	chunks := a.batches * blocks
	lay := a.layCycles(set)
	if a.inBatch(set) {
		return float64(ceilDiv(a.batches, workers)) * (float64(blocks)*cycles + lay)
	}
	return float64(ceilDiv(chunks, workers))*cycles + 1.2*lay*float64(a.batches)/float64(workers)
}

// layCycles is what laying out the keys and values of a batch takes.
func (a *attention) layCycles(set space.Settings) float64 {
	columns := int64(0)
	if a.place(set, "keys", a.keys) != layNowhere {
		columns += a.d
	}
	if a.place(set, "values", a.values) != layNowhere {
		columns += a.e
	}
	return float64(a.n) * float64(columns) / float64(a.lanes) * 4
}

// attentionSeeds are the register tiles that are known to be good, in a few sizes of blocks: rows x vectors of
// accumulators.
func attentionSeeds(registers, vectorBytes int) []string {
	tiles := []string{"th=6 tv=2", "th=4 tv=3"} // AVX2
	switch {
	case registers >= 32 && vectorBytes >= 64: // AVX-512
		tiles = []string{"th=14 tv=2", "th=12 tv=2", "th=7 tv=4", "th=6 tv=4"}
	case registers >= 32: // Neon
		tiles = []string{"th=8 tv=3", "th=6 tv=4", "th=7 tv=3"}
	}
	var seeds []string
	for _, t := range tiles {
		for _, rest := range []string{"block=8 ku=4 keys=1 values=0", "block=16 ku=4 keys=2 values=2", "block=32 ku=4 keys=1 values=1"} {
			seeds = append(seeds, t+" "+rest)
		}
	}
	return seeds
}

// inBatch reports whether a batch is one worker's, because keys or values are laid out for each.
func (a *attention) inBatch(set space.Settings) bool {
	return a.place(set, "keys", a.keys) == layInBatch || a.place(set, "values", a.values) == layInBatch
}

func (a *attention) apply(s *schedule.Schedule, _ *unit, _ *target.Target, set space.Settings) error {
	b := &builder{s: s}
	th, tv, block := a.tileOf(set)
	keys, values := a.place(set, "keys", a.keys), a.place(set, "values", a.values)
	if keys == layNowhere && a.keys >= 0 {
		b.do(s.Inline(a.keys))
	}
	if values == layNowhere && a.values >= 0 {
		b.do(s.Inline(a.values))
	}
	batchAt, at, tileAt := a.outerNest(b, set, th, tv, block)
	b.do2(s.ComputeAt, a.mixed, a.out, tileAt)
	a.productNest(b, a.mixed, set)
	a.softmax(b, at)
	b.do2(s.ComputeAt, a.masked, a.out, at)
	tileAt = a.scoresNest(b, th, tv)
	b.do2(s.ComputeAt, a.scores, a.masked, tileAt)
	a.productNest(b, a.scores, set)
	a.lay(b, a.keys, keys, batchAt)
	a.lay(b, a.values, values, batchAt)
	return b.err
}

// outerNest cuts the result into blocks and tiles. It returns the loops over batches, over blocks and over a block's
// tiles.
func (a *attention) outerNest(b *builder, set space.Settings, th, tv, block int64) (batchAt, at, tileAt int) {
	blocks, rows := b.split(a.out, a.row, block, schedule.Shift)
	tiles, row := b.split(a.out, rows, th, schedule.Peel)
	columns, unit, lane := a.columns(b, a.out, a.column, a.e, tv)
	if b.err != nil {
		return 0, 0, 0
	}
	b.do(b.s.Reorder(a.out, slices.Concat(a.batch, []int{blocks, columns, tiles, row, unit, lane})...))
	b.kind(b.s.Unroll, a.out, row, unit)
	b.kind(b.s.Vectorize, a.out, lane)
	if a.inBatch(set) {
		batchAt, at = b.fuse(a.out, a.batch), blocks
		b.kind(b.s.Parallel, a.out, batchAt)
	} else {
		at = b.fuse(a.out, append(slices.Clone(a.batch), blocks))
		b.kind(b.s.Parallel, a.out, at)
	}
	return batchAt, at, tiles
}

// columns cuts an axis into tiles of tv vectors. The last tile is moved back where there is more than one.
func (a *attention) columns(b *builder, stage, axis int, extent, tv int64) (tiles, unit, lane int) {
	tail := schedule.Shift
	if extent < tv*a.lanes {
		tail = schedule.Peel
	}
	tiles, inside := b.split(stage, axis, tv*a.lanes, tail)
	unit, lane = b.split(stage, inside, a.lanes, schedule.Peel)
	return tiles, unit, lane
}

// scoresNest cuts a block of scores into tiles; it returns the loop over them.
func (a *attention) scoresNest(b *builder, th, tv int64) int {
	g := b.s.Stages[a.masked]
	batch, row, last := a.batchOf(a.masked), a.dims[a.masked][a.row], len(g.Axes)-1
	tiles, inside := b.split(a.masked, row, th, schedule.Peel)
	columns, unit, lane := a.columns(b, a.masked, last, a.n, tv)
	if b.err != nil {
		return 0
	}
	b.do(b.s.Reorder(a.masked, slices.Concat(batch, []int{columns, tiles, inside, unit, lane})...))
	b.kind(b.s.Unroll, a.masked, inside, unit)
	b.kind(b.s.Vectorize, a.masked, lane)
	return tiles
}

func (a *attention) batchOf(id int) []int {
	var list []int
	for _, k := range a.batch {
		list = append(list, a.dims[id][k])
	}
	return list
}

// productNest keeps a tile's sums in registers.
func (a *attention) productNest(b *builder, id int, set space.Settings) {
	axes := len(b.s.Stages[id].Axes)
	unit, lane := b.split(id, axes-1, a.lanes, schedule.Peel)
	steps := []int{axes}
	if ku := min(set["ku"], b.s.Stages[id].Reduce[0].Extent); ku > 1 {
		outer, inner := b.split(id, axes, ku, schedule.Peel)
		steps = []int{outer, inner}
		b.kind(b.s.Unroll, id, inner)
	}
	row := a.dims[id][a.row]
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(id, slices.Concat(a.batchOf(id), steps, []int{row, unit, lane})...))
	b.kind(b.s.Unroll, id, row, unit)
	b.kind(b.s.Vectorize, id, lane)
}

// softmax computes what lies between the products for a block of rows.
func (a *attention) softmax(b *builder, at int) {
	r := &rows{lanes: a.lanes}
	set := space.Settings{"acc": 4, "unroll": 4}
	for _, id := range []int{a.total, a.sum, a.exp, a.largest} {
		if b.err != nil {
			return
		}
		g := b.s.Stages[id]
		switch id {
		case a.exp:
			r.dims = map[int][]int{id: append(a.batchOf(id), a.dims[id][a.row])}
			r.alongNest(b, g, set)
		case a.sum, a.largest:
			for _, partial := range r.accumulate(b, g, 0, set) {
				b.do2(b.s.ComputeAt, partial, id, a.dims[id][a.row])
			}
		}
		b.do2(b.s.ComputeAt, id, a.out, at)
	}
}

// lay computes the stage that lays an operand out: vectors are stored whole, whatever their lanes are gathered from.
func (a *attention) lay(b *builder, id int, where int64, batchAt int) {
	if id < 0 || where == layNowhere || b.err != nil {
		return
	}
	axes := len(b.s.Stages[id].Axes)
	vectors, lane := b.split(id, axes-1, a.lanes, schedule.Peel)
	batch := a.batchOf(id)
	order := slices.Concat(batch, []int{vectors, axes - 2, lane})
	if a.straight[id] {
		order = slices.Concat(batch, []int{axes - 2, vectors, lane})
	}
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(id, order...))
	b.kind(b.s.Vectorize, id, lane)
	switch {
	case where == layInBatch:
		b.do2(b.s.ComputeAt, id, a.out, batchAt)
	case b.err == nil:
		b.kind(b.s.Parallel, id, b.fuse(id, append(batch, order[len(batch)])))
	}
}

// do2 applies a primitive of a stage and a place.
func (b *builder) do2(apply func(stage, consumer, iter int) error, stage, consumer, iter int) {
	if b.err == nil {
		b.err = apply(stage, consumer, iter)
	}
}
