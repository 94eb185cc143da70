package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rows is the sketch of stages that share their outer axes and reduce the others: softmax, normalisation, reductions.
// Every stage is computed row by row, so that a row that fits the cache is read from memory once.
//
//	parallel over rows
//	  for each stage but the last, producers first
//	    a reduction: partial results in acc vectors, combined in the end     rfactor
//	    a map: the row in a scratch buffer                                   unroll vectors at a time
//	  the last stage's row
//
// If the contiguous axis itself is shared, as when the channels of an image are normalised for each pixel, a row is
// acc vectors wide, and reductions need no partial results.
//
// If there are fewer rows than workers and they are long, rows are divided into pieces: each stage is a parallel nest
// of its own, and a reduction keeps a partial result for each piece.
type rows struct {
	*sketch.Rows
	RowwiseNests
	target *target.Target
}

// RowwiseParameters are the sketch's parameters.
type RowwiseParameters struct {
	// Partials is the number of vectors for a reduction's partial results, or the width of a row in vectors.
	Partials int64
	// Unroll is the number of vectors of a map that are computed at a time.
	Unroll int64
}

// NewRowwise returns the schedules of a workload, or nil if its stages do not match the sketch.
func NewRowwise(w *expr.Workload, t *target.Target) *sketch.Whole {
	m := sketch.MatchRows(w)
	if m == nil {
		return nil
	}
	r := &rows{m, RowwiseNests{Lanes: max(1, int64(t.CPU.VectorBytes)/m.Widest), Dims: m.Dims}, t}
	return &sketch.Whole{Out: r.Out, Inline: r.Inline, Family: r.family()}
}

// RowwiseNests builds the nests of stages within rows.
type RowwiseNests struct {
	// Lanes is the number of elements per vector.
	Lanes int64
	// Dims holds, by stage, the dimensions of the axes that rows lie along, in order.
	Dims map[int][]int
}

// others returns the axes of a stage that are not shared.
func (n *RowwiseNests) others(g *schedule.Stage) []int {
	var list []int
	for k := range g.Axes {
		if !slices.Contains(n.Dims[g.ID], k) {
			list = append(list, k)
		}
	}
	return list
}

// Map vectorises a map along its last own axis, several vectors at a time.
func (n *RowwiseNests) Map(b *sketch.Builder, g *schedule.Stage, p RowwiseParameters) {
	own := n.others(g)
	if len(own) == 0 {
		return
	}
	last := own[len(own)-1]
	vectors, lane := b.Split(g.ID, last, n.Lanes, schedule.Peel)
	loop, unrolled := b.Split(g.ID, vectors, max(1, p.Unroll), schedule.Peel)
	order := slices.Concat(n.Dims[g.ID], own[:len(own)-1], []int{loop, unrolled, lane})
	b.Do(b.S.Reorder(g.ID, order...))
	b.Mark(b.S.Unroll, g.ID, unrolled)
	b.Mark(b.S.Vectorize, g.ID, lane)
}

// Reduce keeps the partial results of a reduction along axis k in vectors. It returns their stages, consumers first.
func (n *RowwiseNests) Reduce(b *sketch.Builder, g *schedule.Stage, k int, p RowwiseParameters) []int {
	extent := g.Reduce[k].Extent
	if extent < 2*n.Lanes || n.Lanes == 1 {
		return nil
	}
	acc := min(max(1, p.Partials), extent/n.Lanes)
	partial := n.factor(b, g, k, acc*n.Lanes)
	list := []int{partial.ID}
	n.partialNest(b, partial, k, extent/(acc*n.Lanes))
	if acc > 1 {
		vector := n.factor(b, g, 0, n.Lanes)
		axes := len(vector.Axes)
		b.Do(b.S.Reorder(vector.ID, axes, axes-1))
		b.Mark(b.S.Unroll, vector.ID, axes)
		b.Mark(b.S.Vectorize, vector.ID, axes-1)
		list = []int{vector.ID, partial.ID}
	}
	b.Mark(b.S.Vectorize, g.ID, len(g.Axes))
	return list
}

func (n *RowwiseNests) factor(b *sketch.Builder, g *schedule.Stage, k int, factor int64) *schedule.Stage {
	return b.S.Stages[sketch.Get(b.S.RFactor(g.ID, k, factor, schedule.Lanes))]
}

// partialNest builds the nest of partial results, reduction k innermost. A partial last iteration is peeled.
func (n *RowwiseNests) partialNest(b *sketch.Builder, p *schedule.Stage, k int, whole int64) {
	axes := len(p.Axes)
	unit, lane := b.Split(p.ID, axes-1, n.Lanes, schedule.Peel)
	order := sketch.Axes(axes - 1)
	for d := range p.Reduce {
		if d != k {
			order = append(order, axes+d)
		}
	}
	steps := []int{axes + k}
	if extent := p.Reduce[k].Extent; whole < extent {
		most, step := b.Split(p.ID, axes+k, whole, schedule.Peel)
		steps = []int{most, step}
		if whole == 1 { // both tiles are full, so only unrolling distinguishes them
			b.Mark(b.S.Unroll, p.ID, most)
		}
	}
	order = slices.Concat(order, steps, []int{unit, lane})
	b.Do(b.S.Reorder(p.ID, order...))
	b.Mark(b.S.Unroll, p.ID, unit)
	b.Mark(b.S.Vectorize, p.ID, lane)
}
