package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (p *tileTile) Apply(s *schedule.Schedule, q tileParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	if q.parts > 1 {
		(&tileTile{p.Divided(b, q.parts)}).nests(b, q)
		p.AddUp(b)
		return nil
	}
	p.nests(b, q)
	return nil
}

// nests builds the nests of the results, the sums, and their operands.
func (p *tileTile) nests(b *sketch.Builder, q tileParameters) {
	s := b.S
	block, thread := p.results(b, q)
	for _, o := range slices.Backward(p.Unit.Also) {
		b.ComputeAt(o, p.Unit.Out, thread)
	}
	b.ComputeAt(p.Unit.Acc, p.Unit.Out, block)
	b.Do(s.SetScope(p.Unit.Acc, schedule.Registers))
	step := p.sums(b, q)
	p.Fetch(b, q.box(), q.fetching(), step)
	p.Persist(b, q.scheduler)
}

// tilePlace holds the loops of a tile along one axis: over blocks, over threads, and in a thread.
type tilePlace struct{ block, thread, own int }

// cut tiles an axis. Interleaved threads have neighbouring elements; otherwise each thread has contiguous elements.
func cut(b *sketch.Builder, stage, axis int, threads, own int64, interleaved bool) tilePlace {
	block, rest := b.Split(stage, axis, threads*own, schedule.Peel)
	p := inside(b, stage, rest, threads, own, interleaved)
	p.block = block
	return p
}

// inside tiles a block's part of an axis.
func inside(b *sketch.Builder, stage, axis int, threads, own int64, interleaved bool) (p tilePlace) {
	if interleaved {
		p.own, p.thread = b.Split(stage, axis, threads, schedule.Peel)
	} else {
		p.thread, p.own = b.Split(stage, axis, own, schedule.Peel)
	}
	return p
}

// interleaved reports whether neighbouring threads have neighbouring rows or columns, so that accesses coalesce and
// use different banks. It requires that all tiles along the axis are whole, and that no other output is computed from
// a thread's contiguous results. Columns of a group belong to one thread, which reads their shared data once.
func (p *tileTile) interleaved(axis int, tile int64) bool {
	if axis == p.Columns && p.Group > 1 {
		return false
	}
	return p.Extents[axis]%tile == 0 && len(p.Unit.Also) == 0
}

// results builds the loops over the results.
func (p *tileTile) results(b *sketch.Builder, q tileParameters) (block, thread int) {
	out, s := p.Unit.Out, b.S
	var blocks []int
	var rows, columns tilePlace
	for k := range p.Extents {
		switch k {
		case p.Rows:
			rows = cut(b, out, k, q.tall, q.rows, p.interleaved(k, q.tall*q.rows))
			blocks = append(blocks, rows.block)
		case p.Columns:
			columns = cut(b, out, k, q.wide, q.columns, p.interleaved(k, q.wide*q.columns))
			blocks = append(blocks, columns.block)
		default:
			blocks = append(blocks, k)
		}
	}
	blocks = q.scheduler.LoopOrder(blocks, rows.block, columns.block)
	b.Do(s.Reorder(out, append(slices.Clone(blocks), rows.thread, columns.thread, rows.own, columns.own)...))
	block = b.Fuse(out, blocks)
	thread = b.Fuse(out, []int{rows.thread, columns.thread})
	b.Mark(s.Unroll, out, rows.own, columns.own)
	Bind(b, out, block, thread)
	return block, thread
}

// sums builds the loops of the reduction inside a tile, and returns the loop over its steps.
func (p *tileTile) sums(b *sketch.Builder, q tileParameters) (step int) {
	acc, s := p.Unit.Acc, b.S
	var single []int
	var rows, columns tilePlace
	for k := range p.Extents {
		switch k {
		case p.Rows:
			rows = inside(b, acc, k, q.tall, q.rows, p.interleaved(k, q.tall*q.rows))
		case p.Columns:
			columns = inside(b, acc, k, q.wide, q.columns, p.interleaved(k, q.wide*q.columns))
		default:
			single = append(single, k)
		}
	}
	step, inner := b.Split(acc, len(p.Extents)+p.Step, q.depth, schedule.Peel)
	order := append(slices.Clone(single), step, rows.thread, columns.thread)
	for k := range p.Reduce {
		if k != p.Step {
			order = append(order, len(p.Extents)+k)
		}
	}
	if q.unroll > 1 && q.unroll < q.depth {
		outer, unrolled := b.Split(acc, inner, q.unroll, schedule.Peel)
		order = append(order, outer, unrolled)
		b.Mark(s.Unroll, acc, unrolled)
	} else {
		order = append(order, inner)
		if q.unroll >= q.depth {
			b.Mark(s.Unroll, acc, inner)
		}
	}
	order = append(order, rows.own, columns.own)
	b.Do(s.Reorder(acc, order...))
	thread := b.Fuse(acc, []int{rows.thread, columns.thread})
	b.Mark(s.Unroll, acc, rows.own, columns.own)
	b.Do(s.Bind(acc, thread, schedule.ThreadLevel))
	return step
}
