package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (p *tensorTile) Apply(s *schedule.Schedule, q tensorParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	p = p.of(q)
	if q.parts > 1 {
		(&tensorTile{Product: p.Divided(b, q.parts), format: p.format}).nests(b, q)
		p.AddUp(b)
		return nil
	}
	p.nests(b, q)
	return nil
}

// nests builds the nests of the results, the sums, and their operands.
func (p *tensorTile) nests(b *sketch.Builder, q tensorParameters) {
	s := b.S
	if p.Joint { // before other primitives on the reduction
		b.Do(s.Flatten(p.Unit.Acc, p.Rows-1, p.Rows))
	}
	block, result := p.results(b, q)
	// A thread's results are not contiguous: what is computed from one is stored with it.
	for _, o := range slices.Backward(p.Unit.Also) {
		b.ComputeAt(o, p.Unit.Out, result)
	}
	b.ComputeAt(p.Unit.Acc, p.Unit.Out, block)
	b.Do(s.SetScope(p.Unit.Acc, schedule.Registers))
	p.Fetch(b, p.box(q), p.fetching(q), p.sums(b, q))
	p.Persist(b, q.scheduler)
}

// place holds the loops of a tile along one axis: over groups of threads (warps or warpgroups), over the matrices of
// each, and over the rows or columns of a matrix. Each thread has two of them.
type place struct {
	group, matrix, own int
	threads            []int
}

// rowsOf divides an axis into matrices of 16 rows for each of some warps. Thread k of eight has rows k and k+8.
func rowsOf(b *sketch.Builder, stage, axis int, matrices, warps int64) (at place) {
	var inside, thread int
	at.group, inside = b.Split(stage, axis, matrices*warps*nvidia.MatrixRows, schedule.Peel)
	at.matrix, inside = b.Split(stage, inside, warps*nvidia.MatrixRows, schedule.Peel)
	if warps > 1 {
		var warp int
		warp, inside = b.Split(stage, inside, nvidia.MatrixRows, schedule.Peel)
		at.threads = append(at.threads, warp)
	}
	at.own, thread = b.Split(stage, inside, nvidia.MatrixRows/2, schedule.Peel)
	at.threads = append(at.threads, thread)
	return at
}

// columnsOf divides an axis into matrices of 8 columns. Thread k of four has two adjacent ones.
func columnsOf(b *sketch.Builder, stage, axis int, matrices int64) (at place) {
	var inside, thread int
	at.group, inside = b.Split(stage, axis, matrices*nvidia.MatrixColumns, schedule.Peel)
	at.matrix, inside = b.Split(stage, inside, nvidia.MatrixColumns, schedule.Peel)
	thread, at.own = b.Split(stage, inside, 2, schedule.Peel)
	at.threads = []int{thread}
	return at
}

// own returns the loops over the results of a thread.
func own(tall, wide place) []int { return []int{tall.matrix, tall.own, wide.matrix, wide.own} }

// threads returns the loops over the threads of a block, outer ones first.
func threads(tall, wide place) []int {
	return slices.Concat([]int{tall.group, wide.group}, tall.threads, wide.threads)
}

// results builds the loops over the results, and returns the loop over blocks and the innermost one.
func (p *tensorTile) results(b *sketch.Builder, q tensorParameters) (block, result int) {
	out, s, box := p.Unit.Out, b.S, p.box(q)
	var blocks []int
	var tall, wide place
	var rows, across int
	for k := range p.Extents {
		outer := k
		if p.Joint && k == p.Rows-1 {
			continue
		}
		switch k {
		case p.Rows:
			var inside int
			outer, inside = b.Split(out, p.RowsOf(b), box.Rows, schedule.Guard)
			tall, rows = rowsOf(b, out, inside, q.rows, p.unit().rows/nvidia.MatrixRows), outer
		case p.Columns:
			var inside int
			outer, inside = b.Split(out, k, box.Columns, schedule.Guard)
			wide, across = columnsOf(b, out, inside, q.columns), outer
		}
		blocks = append(blocks, outer)
	}
	blocks = q.scheduler.LoopOrder(blocks, rows, across)
	b.Do(s.Reorder(out, slices.Concat(blocks, threads(tall, wide), own(tall, wide))...))
	block = b.Fuse(out, blocks)
	thread := b.Fuse(out, threads(tall, wide))
	b.Mark(s.Unroll, out, own(tall, wide)...)
	Bind(b, out, block, thread)
	return block, wide.own
}

// sums builds the loops of the reduction inside a tile, and returns the loop over its steps.
func (p *tensorTile) sums(b *sketch.Builder, q tensorParameters) (step int) {
	acc, s := p.Unit.Acc, b.S
	var single []int
	var tall, wide place
	for k := range p.Extents {
		switch k {
		case p.Rows:
			tall = rowsOf(b, acc, k, q.rows, p.unit().rows/nvidia.MatrixRows)
		case p.Columns:
			wide = columnsOf(b, acc, k, q.columns)
		default:
			single = append(single, k)
		}
	}
	step, terms := b.Split(acc, len(p.Extents)+p.Step, p.box(q).Depth, schedule.Peel)
	order := slices.Concat(single, []int{step}, threads(tall, wide))
	for k := range p.Reduce {
		if k != p.Step {
			order = append(order, len(p.Extents)+k)
		}
	}
	b.Do(s.Reorder(acc, slices.Concat(order, []int{terms}, own(tall, wide))...))
	thread := b.Fuse(acc, threads(tall, wide))
	b.Mark(s.Unroll, acc, own(tall, wide)...)
	b.Do(s.Tensorize(acc, terms, p.format))
	b.Do(s.Bind(acc, thread, schedule.ThreadLevel))
	return step
}
