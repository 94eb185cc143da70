package tile

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/elementwise"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// Apply implements space.Structure.
func (p *product) Apply(s *schedule.Schedule, q parameters) error {
	b := &nest.Builder{S: s}
	block, thread := p.results(b, q)
	for _, o := range slices.Backward(p.unit.Also) {
		b.ComputeAt(o, p.unit.Out, thread)
	}
	b.ComputeAt(p.unit.Acc, p.unit.Out, block)
	if b.Err == nil {
		b.Do(s.SetScope(p.unit.Acc, schedule.Registers))
	}
	step := p.sums(b, q)
	taken := map[int]bool{}
	for _, o := range p.operands {
		if o.feed >= 0 {
			taken[o.feed] = true
		}
	}
	for _, f := range p.unit.Feeds {
		if !taken[f] && b.Err == nil {
			elementwise.Alone(b, f)
		}
	}
	p.fetch(b, q, step)
	return b.Err
}

// place is the loops of a tile along one axis: on blocks, on threads, and in a thread.
type place struct{ block, thread, own int }

// cut tiles an axis. Threads that are interleaved have neighbouring elements; otherwise each has neighbours of its
// own.
func cut(b *nest.Builder, stage, axis int, threads, own int64, interleaved bool) (p place) {
	var inside int
	p.block, inside = b.Split(stage, axis, threads*own, schedule.Peel)
	if interleaved {
		p.own, p.thread = b.Split(stage, inside, threads, schedule.Peel)
	} else {
		p.thread, p.own = b.Split(stage, inside, own, schedule.Peel)
	}
	return p
}

// interleaved reports whether neighbouring threads have neighbouring columns, so that they read and write memory
// together: where all tiles are whole, and no other output is computed from what a thread has side by side.
func (p *product) interleaved(q parameters) bool {
	return p.extents[p.columns]%(q.wide*q.columns) == 0 && len(p.unit.Also) == 0
}

// results builds the loops over the results.
func (p *product) results(b *nest.Builder, q parameters) (block, thread int) {
	out, s := p.unit.Out, b.S
	var blocks []int
	var rows, columns place
	for k := range p.extents {
		switch k {
		case p.rows:
			rows = cut(b, out, k, q.tall, q.rows, false)
			blocks = append(blocks, rows.block)
		case p.columns:
			columns = cut(b, out, k, q.wide, q.columns, p.interleaved(q))
			blocks = append(blocks, columns.block)
		default:
			blocks = append(blocks, k)
		}
	}
	if b.Err != nil {
		return 0, 0
	}
	b.Do(s.Reorder(out, append(slices.Clone(blocks), rows.thread, columns.thread, rows.own, columns.own)...))
	block = b.Fuse(out, blocks)
	thread = b.Fuse(out, []int{rows.thread, columns.thread})
	b.Mark(s.Unroll, out, rows.own, columns.own)
	elementwise.Bind(b, out, block, thread)
	return block, thread
}

// sums builds the loops of the reduction inside of a tile, and returns that over its steps.
func (p *product) sums(b *nest.Builder, q parameters) (step int) {
	acc, s := p.unit.Acc, b.S
	if b.Err != nil {
		return 0
	}
	var single []int
	var rows, columns place
	for k := range p.extents {
		switch k {
		case p.rows:
			rows.thread, rows.own = b.Split(acc, k, q.rows, schedule.Peel)
		case p.columns:
			if p.interleaved(q) {
				columns.own, columns.thread = b.Split(acc, k, q.wide, schedule.Peel)
			} else {
				columns.thread, columns.own = b.Split(acc, k, q.columns, schedule.Peel)
			}
		default:
			single = append(single, k)
		}
	}
	step, inner := b.Split(acc, len(p.extents)+p.step, q.depth, schedule.Peel)
	order := append(slices.Clone(single), step, rows.thread, columns.thread)
	for k := range p.reduce {
		if k != p.step {
			order = append(order, len(p.extents)+k)
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
	if b.Err != nil {
		return 0
	}
	b.Do(s.Reorder(acc, order...))
	thread := b.Fuse(acc, []int{rows.thread, columns.thread})
	b.Mark(s.Unroll, acc, rows.own, columns.own)
	if b.Err == nil {
		b.Do(s.Bind(acc, thread, schedule.ThreadLevel))
	}
	return step
}

// fetch brings the operands of a step into shared memory, by all threads together.
func (p *product) fetch(b *nest.Builder, q parameters, step int) {
	for _, o := range p.operands {
		stage := o.feed
		if b.Err != nil {
			return
		}
		if stage < 0 {
			perm := make([]int, len(o.load.Tensor.Shape))
			for k := range perm {
				perm[k] = k
			}
			var err error
			stage, err = b.S.CacheRead(p.unit.Acc, o.place(b.S.Stages[p.unit.Acc]), perm)
			b.Do(err)
		}
		b.ComputeAt(stage, p.unit.Acc, step)
		if b.Err != nil {
			return
		}
		b.Do(b.S.SetScope(stage, schedule.Shared))
		all := make([]int, len(b.S.Stages[stage].Axes))
		for k := range all {
			all[k] = k
		}
		_, thread := b.Split(stage, b.Fuse(stage, all), q.tall*q.wide, schedule.Peel)
		if b.Err == nil {
			b.Do(b.S.Bind(stage, thread, schedule.ThreadLevel))
		}
		if b.Err == nil && q.stages > 1 {
			b.Do(b.S.Pipeline(stage, q.stages))
		}
	}
}

// place is the operand's place among the tensors that the reduction loads, some of which are copies by now.
func (o operand) place(g *schedule.Stage) int {
	var seen []*expr.Tensor
	for _, l := range expr.Loads(g.Body) {
		if !slices.Contains(seen, l.Tensor) {
			seen = append(seen, l.Tensor)
		}
	}
	return slices.Index(seen, o.load.Tensor)
}
