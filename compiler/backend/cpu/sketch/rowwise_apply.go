package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// family returns the schedules of the rows.
func (r *rows) family() searchspace.Family {
	type p = RowwiseParameters
	vectors := sketch.CeilDiv(r.Length, r.Lanes)
	if r.Across {
		vectors = 8
	}
	return &searchspace.Sketch[p]{
		Open: searchspace.WithChoices([]searchspace.Parameter[p]{
			sketch.Knob("acc", func(p *p) *int64 { return &p.Partials }, sketch.AtMost(vectors, 1, 2, 4, 8)...),
			sketch.Knob("unroll", func(p *p) *int64 { return &p.Unroll }, sketch.AtMost(vectors, 1, 2, 4, 8)...),
		}),
		Variants: []searchspace.Variant[p]{{By: searchspace.Direct, Structure: r}},
	}
}

// Cost implements searchspace.Structure. Each load and each vector of a map counts one; the latency of additions
// bounds reductions.
func (r *rows) Cost(p RowwiseParameters) float64 {
	acc, unroll := float64(max(1, p.Partials)), float64(max(1, p.Unroll))
	vectors := float64(sketch.CeilDiv(r.Length, r.Lanes))
	row := vectors * (float64(r.Loads) + float64(1+len(r.Stages))*max(microarch.Latency/acc, 1) + 1/unroll)
	row += float64(len(r.Contiguous)) * (microarch.Across + microarch.Latency*acc/2)
	if r.Across {
		row += float64(r.Length) * 2 / acc
	}
	return row * float64(sketch.CeilDiv(r.Count, min(microarch.Workers(r.target), r.Count)))
}

// minPiece is the minimum number of elements of a row that justifies starting a worker.
const minPiece = 8 << 10

// pieces returns how many pieces rows are divided into, or 1 if there are enough rows.
func (r *rows) pieces() int64 {
	workers := microarch.Workers(r.target)
	if r.Across || r.Count >= workers || workers == 1 {
		return 1
	}
	return max(1, min(sketch.CeilDiv(workers, r.Count), r.Length/minPiece))
}

// Legal implements searchspace.Structure.
func (r *rows) Legal(RowwiseParameters) error { return nil }

// Apply implements searchspace.Structure.
func (r *rows) Apply(s *schedule.Schedule, p RowwiseParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	switch {
	case r.Across:
		r.applyAcross(b, p)
	case r.pieces() > 1:
		r.applyPieces(b, p)
	default:
		r.applyAlong(b, p)
	}
	return nil
}

// applyAlong computes row by row, with vectors along the row.
func (r *rows) applyAlong(b *sketch.Builder, p RowwiseParameters) {
	partials := r.along(b, r.Out, p)
	at := noRows
	if len(r.Shared) > 0 {
		b.MoveFirst(r.Out, r.Shared...)
		at = b.Fuse(r.Out, r.Shared)
		b.Mark(b.S.Parallel, r.Out, at)
	}
	r.computeAt(b, partials, at)
	for k := len(r.Stages) - 1; k >= 0; k-- {
		id := r.Stages[k]
		r.computeAt(b, append([]int{id}, r.along(b, id, p)...), at)
	}
}

// along builds the nest of a stage within a row. It returns the stages of a reduction's partial results, consumers
// first.
func (r *rows) along(b *sketch.Builder, id int, p RowwiseParameters) []int {
	g := b.S.Stages[id]
	if g.Combiner != expr.None {
		return r.Reduce(b, g, r.Contiguous[id], p)
	}
	r.Map(b, g, p)
	return nil
}

// noRows replaces the loop over rows if there is a single row.
const noRows = -1

// computeAt computes stages, consumers first, in the row of the last stage.
func (r *rows) computeAt(b *sketch.Builder, stages []int, at int) {
	for _, id := range stages {
		if at != noRows {
			b.ComputeAt(id, r.Out, at)
		}
	}
}

// reductions returns the iterators of a stage's reduction axes.
func reductions(g *schedule.Stage) []int {
	var list []int
	for k := range g.Reduce {
		list = append(list, len(g.Axes)+k)
	}
	return list
}

// applyAcross computes blocks of rows side by side, with vectors along their shared contiguous axis.
func (r *rows) applyAcross(b *sketch.Builder, p RowwiseParameters) {
	out := b.S.Stages[r.Out]
	dims := r.Rows.Dims[r.Out]
	last := dims[len(dims)-1]
	blocks, inside := b.Split(out.ID, last, max(1, p.Partials)*r.Lanes, schedule.Peel)
	unit, lane := b.Split(out.ID, inside, r.Lanes, schedule.Peel)
	outer := append(slices.Clone(dims[:len(dims)-1]), blocks)
	b.Do(b.S.Reorder(out.ID, slices.Concat(outer, r.others(out), reductions(out), []int{unit, lane})...))
	at := b.Fuse(out.ID, outer)
	b.Mark(b.S.Parallel, out.ID, at)
	b.Mark(b.S.Unroll, out.ID, unit)
	b.Mark(b.S.Vectorize, out.ID, lane)
	for k := len(r.Stages) - 1; k >= 0; k-- {
		g := b.S.Stages[r.Stages[k]]
		r.acrossNest(b, g)
		r.computeAt(b, []int{g.ID}, at)
	}
}

// acrossNest vectorises a stage along its last shared axis, with its reductions outside.
func (r *rows) acrossNest(b *sketch.Builder, g *schedule.Stage) {
	dims := r.Rows.Dims[g.ID]
	last := dims[len(dims)-1]
	unit, lane := b.Split(g.ID, last, r.Lanes, schedule.Peel)
	b.Do(b.S.Reorder(g.ID, slices.Concat(dims[:len(dims)-1], r.others(g), reductions(g), []int{unit, lane})...))
	b.Mark(b.S.Unroll, g.ID, unit)
	b.Mark(b.S.Vectorize, g.ID, lane)
}

// applyPieces makes every stage a parallel nest of its own. Reductions keep a partial result for each piece of a row.
func (r *rows) applyPieces(b *sketch.Builder, p RowwiseParameters) {
	for _, id := range append(slices.Clone(r.Stages), r.Out) {
		g := b.S.Stages[id]
		if g.Combiner != expr.None {
			r.pieced(b, g, p)
			continue
		}
		b.Do(sketch.Settle(b.S, NewElementwise(b.S, sketch.Unit{Out: id, Acc: -1}, r.target)))
	}
}

// pieced divides a reduction among workers. Pieces are equal, so that none ends within a vector.
func (r *rows) pieced(b *sketch.Builder, g *schedule.Stage, chosen RowwiseParameters) {
	k := r.Contiguous[g.ID]
	extent := g.Reduce[k].Extent
	pieces := sketch.DivisorAtMost(extent, 4*r.pieces())
	if pieces == 1 {
		return
	}
	p := b.S.Stages[sketch.Get(b.S.RFactor(g.ID, k, extent/pieces, schedule.Pieces))]
	partials := r.Reduce(b, p, k, chosen)
	at := b.FuseAxes(p.ID, len(p.Axes))
	b.Mark(b.S.Parallel, p.ID, at)
	for _, x := range partials {
		b.ComputeAt(x, p.ID, at)
	}
}
