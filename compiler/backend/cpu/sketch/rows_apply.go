package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// family is the schedules of the rows.
func (r *rows) family() space.Family {
	type p = rowsParameters
	vectors := ceilDiv(r.length, r.lanes)
	if r.across {
		vectors = 8
	}
	return &space.Sketch[p]{
		Open: space.Worth([]space.Parameter[p]{
			knob("acc", func(p *p) *int64 { return &p.partials }, atMost(vectors, 1, 2, 4, 8)...),
			knob("unroll", func(p *p) *int64 { return &p.unroll }, atMost(vectors, 1, 2, 4, 8)...),
		}),
		Variants: []space.Variant[p]{{By: space.Direct, Structure: r}},
	}
}

// Cost implements space.Structure: each load and each vector of a map one, reductions as fast as their chains of
// additions allow.
func (r *rows) Cost(p rowsParameters) float64 {
	acc, unroll := float64(max(1, p.partials)), float64(max(1, p.unroll))
	vectors := float64(ceilDiv(r.length, r.lanes))
	row := vectors * (float64(r.loads) + float64(1+len(r.stages))*max(machine.Latency/acc, 1) + 1/unroll)
	row += float64(len(r.contiguous)) * (machine.Across + machine.Latency*acc/2)
	if r.across {
		row += float64(r.length) * 2 / acc
	}
	workers := min(machine.Workers(r.target), r.count)
	return row * float64(ceilDiv(r.count, workers))
}

// minPiece is the fewest elements of a row that are worth a worker's start.
const minPiece = 8 << 10

// pieces is into how many pieces rows are cut; 1 where there are rows enough.
func (r *rows) pieces() int64 {
	workers := machine.Workers(r.target)
	if r.across || r.count >= workers || workers == 1 {
		return 1
	}
	return max(1, min(ceilDiv(workers, r.count), r.length/minPiece))
}

// Legal implements space.Structure.
func (r *rows) Legal(rowsParameters) error { return nil }

// Apply implements space.Structure.
func (r *rows) Apply(s *schedule.Schedule, p rowsParameters) error {
	b := &builder{s: s}
	switch {
	case r.across:
		r.applyAcross(b, p)
	case r.pieces() > 1:
		return r.applyPieces(b, p)
	default:
		r.applyAlong(b, p)
	}
	return b.err
}

// applyAlong computes row by row, with vectors along the row.
func (r *rows) applyAlong(b *builder, p rowsParameters) {
	partials := r.along(b, r.out, p)
	at := noRows
	if len(r.shared) > 0 && b.err == nil {
		b.do(b.s.Reorder(r.out, leavesFirst(b.s.Stages[r.out], r.shared)...))
		at = b.fuse(r.out, r.shared)
		b.kind(b.s.Parallel, r.out, at)
	}
	r.computeAt(b, partials, at)
	for k := len(r.stages) - 1; k >= 0 && b.err == nil; k-- {
		id := r.stages[k]
		r.computeAt(b, append([]int{id}, r.along(b, id, p)...), at)
	}
}

// along makes the nest of a stage within a row. It returns the stages of a reduction's partial results, consumers
// first.
func (r *rows) along(b *builder, id int, p rowsParameters) []int {
	g := b.s.Stages[id]
	if g.Combiner != expr.None {
		return r.accumulate(b, g, r.contiguous[id], p)
	}
	r.alongNest(b, g, p)
	return nil
}

// noRows stands for the loop over rows where there is a single one.
const noRows = -1

// computeAt computes stages, consumers first, in the row of the last stage.
func (r *rows) computeAt(b *builder, stages []int, at int) {
	for _, id := range stages {
		if b.err == nil && at != noRows {
			b.do(b.s.ComputeAt(id, r.out, at))
		}
	}
}

// others are the axes of a stage that are not shared.
func (r *rows) others(g *schedule.Stage) []int {
	var list []int
	for k := range g.Axes {
		if !slices.Contains(r.dims[g.ID], k) {
			list = append(list, k)
		}
	}
	return list
}

// reductions are the iterators of a stage's reduction axes.
func reductions(g *schedule.Stage) []int {
	var list []int
	for k := range g.Reduce {
		list = append(list, len(g.Axes)+k)
	}
	return list
}

// leavesFirst is an order of all leaves with the given ones first.
func leavesFirst(g *schedule.Stage, first []int) []int {
	order := slices.Clone(first)
	for _, it := range g.Leaves {
		if !slices.Contains(first, it.ID) {
			order = append(order, it.ID)
		}
	}
	return order
}

// alongNest vectorizes a map along the last of its own axes, several vectors at a time.
func (r *rows) alongNest(b *builder, g *schedule.Stage, p rowsParameters) {
	own := r.others(g)
	if len(own) == 0 {
		return
	}
	last := own[len(own)-1]
	vectors, lane := b.split(g.ID, last, r.lanes, schedule.Peel)
	loop, unrolled := b.split(g.ID, vectors, max(1, p.unroll), schedule.Peel)
	if b.err != nil {
		return
	}
	order := slices.Concat(r.dims[g.ID], own[:len(own)-1], []int{loop, unrolled, lane})
	b.do(b.s.Reorder(g.ID, order...))
	b.kind(b.s.Unroll, g.ID, unrolled)
	b.kind(b.s.Vectorize, g.ID, lane)
}

// accumulate keeps the partial results of a reduction along axis k in vectors. It returns their stages, consumers
// first.
func (r *rows) accumulate(b *builder, g *schedule.Stage, k int, p rowsParameters) []int {
	extent := g.Reduce[k].Extent
	if extent < 2*r.lanes || r.lanes == 1 {
		return nil
	}
	acc := min(max(1, p.partials), extent/r.lanes)
	partial := r.factor(b, g, k, acc*r.lanes)
	if b.err != nil {
		return nil
	}
	list := []int{partial.ID}
	r.partialNest(b, partial, k, extent/(acc*r.lanes))
	if acc > 1 {
		vector := r.factor(b, g, 0, r.lanes)
		if b.err != nil {
			return nil
		}
		axes := len(vector.Axes)
		b.do(b.s.Reorder(vector.ID, axes, axes-1))
		b.kind(b.s.Unroll, vector.ID, axes)
		b.kind(b.s.Vectorize, vector.ID, axes-1)
		list = []int{vector.ID, partial.ID}
	}
	b.kind(b.s.Vectorize, g.ID, len(g.Axes))
	return list
}

func (r *rows) factor(b *builder, g *schedule.Stage, k int, factor int64) *schedule.Stage {
	if b.err != nil {
		return nil
	}
	id, err := b.s.RFactor(g.ID, k, factor, schedule.Lanes)
	b.do(err)
	if err != nil {
		return nil
	}
	return b.s.Stages[id]
}

// partialNest is the nest of partial results: reduction k innermost, its last iteration apart where it is not whole.
func (r *rows) partialNest(b *builder, p *schedule.Stage, k int, whole int64) {
	axes := len(p.Axes)
	unit, lane := b.split(p.ID, axes-1, r.lanes, schedule.Peel)
	var order []int
	for d := range axes - 1 {
		order = append(order, d)
	}
	for d := range p.Reduce {
		if d != k {
			order = append(order, axes+d)
		}
	}
	steps := []int{axes + k}
	if extent := p.Reduce[k].Extent; whole < extent {
		most, step := b.split(p.ID, axes+k, whole, schedule.Peel)
		steps = []int{most, step}
		if whole == 1 { // both tiles are full: only unrolling tells them apart
			b.kind(b.s.Unroll, p.ID, most)
		}
	}
	order = slices.Concat(order, steps, []int{unit, lane})
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(p.ID, order...))
	b.kind(b.s.Unroll, p.ID, unit)
	b.kind(b.s.Vectorize, p.ID, lane)
}

// applyAcross computes blocks of rows side by side, with vectors along their shared contiguous axis.
func (r *rows) applyAcross(b *builder, p rowsParameters) {
	out := b.s.Stages[r.out]
	dims := r.dims[r.out]
	last := dims[len(dims)-1]
	blocks, inside := b.split(out.ID, last, max(1, p.partials)*r.lanes, schedule.Peel)
	unit, lane := b.split(out.ID, inside, r.lanes, schedule.Peel)
	outer := append(slices.Clone(dims[:len(dims)-1]), blocks)
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(out.ID, slices.Concat(outer, r.others(out), reductions(out), []int{unit, lane})...))
	at := b.fuse(out.ID, outer)
	b.kind(b.s.Parallel, out.ID, at)
	b.kind(b.s.Unroll, out.ID, unit)
	b.kind(b.s.Vectorize, out.ID, lane)
	for k := len(r.stages) - 1; k >= 0; k-- {
		g := b.s.Stages[r.stages[k]]
		r.acrossNest(b, g)
		r.computeAt(b, []int{g.ID}, at)
	}
}

// acrossNest vectorizes a stage along its last shared axis, whatever it reduces outside of it.
func (r *rows) acrossNest(b *builder, g *schedule.Stage) {
	dims := r.dims[g.ID]
	last := dims[len(dims)-1]
	unit, lane := b.split(g.ID, last, r.lanes, schedule.Peel)
	if b.err != nil {
		return
	}
	b.do(b.s.Reorder(g.ID, slices.Concat(dims[:len(dims)-1], r.others(g), reductions(g), []int{unit, lane})...))
	b.kind(b.s.Unroll, g.ID, unit)
	b.kind(b.s.Vectorize, g.ID, lane)
}

// applyPieces makes every stage a parallel nest of its own; reductions keep a partial result for each piece of a row.
func (r *rows) applyPieces(b *builder, p rowsParameters) error {
	for _, id := range append(slices.Clone(r.stages), r.out) {
		g := b.s.Stages[id]
		if g.Combiner != expr.None {
			r.pieced(b, g, p)
			continue
		}
		if b.err == nil {
			b.do(settle(b.s, newFlat(b.s, &unit{out: id, acc: -1}, r.target).family()))
		}
	}
	return b.err
}

// pieced divides a reduction among workers. Pieces are equal, so that none ends within a vector.
func (r *rows) pieced(b *builder, g *schedule.Stage, chosen rowsParameters) {
	k := r.contiguous[g.ID]
	extent := g.Reduce[k].Extent
	pieces := divisorAtMost(extent, 4*r.pieces())
	if pieces == 1 || b.err != nil {
		return
	}
	id, err := b.s.RFactor(g.ID, k, extent/pieces, schedule.Pieces)
	b.do(err)
	if err != nil {
		return
	}
	p := b.s.Stages[id]
	partials := r.accumulate(b, p, k, chosen)
	var axes []int
	for d := range p.Axes {
		axes = append(axes, d)
	}
	at := b.fuse(p.ID, axes)
	b.kind(b.s.Parallel, p.ID, at)
	for _, x := range partials {
		if b.err == nil {
			b.do(b.s.ComputeAt(x, p.ID, at))
		}
	}
}
