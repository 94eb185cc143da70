package slices

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/elementwise"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// Apply implements space.Structure.
func (p *sums) Apply(s *schedule.Schedule, q parameters) error {
	b := &nest.Builder{S: s}
	for _, f := range p.unit.Feeds {
		if b.Err == nil {
			elementwise.Alone(b, f)
		}
	}
	u := p.unit
	if q.parts > 1 {
		u = p.divided(b, q)
	}
	last := p.last
	if q.parts > 1 {
		last++
	}
	p.nests(b, u, last, q)
	return b.Err
}

// divided makes partial sums a unit of their own, and has threads add them up in a later launch.
func (p *sums) divided(b *nest.Builder, q parameters) nest.Unit {
	if b.Err != nil {
		return nest.Unit{}
	}
	partial, err := b.S.RFactor(p.unit.Acc, p.step, p.extent/q.parts, schedule.Planes)
	if b.Do(err); b.Err != nil {
		return nest.Unit{}
	}
	acc, err := b.S.CacheWrite(partial)
	b.Do(err)
	rest := p.unit
	rest.Feeds = nil
	elementwise.Results(b, rest, len(p.extents), 128, 1)
	return nest.Unit{Out: partial, Acc: acc}
}

// nests builds those of the results, of which a block has some along an axis, and of the sums.
func (p *sums) nests(b *nest.Builder, u nest.Unit, last int, q parameters) {
	if b.Err != nil {
		return
	}
	axes := len(b.S.Stages[u.Out].Axes)
	if q.across == 1 {
		elementwise.Results(b, u, axes, q.side, 1)
		p.unrolled(b, u.Acc, axes+p.step, q)
		return
	}
	each, err := b.S.RFactor(u.Acc, p.step, q.across, schedule.Lanes)
	if b.Do(err); b.Err != nil {
		return
	}
	outer, thread := b.Split(u.Out, last, q.side, schedule.Peel)
	blocks := append(others(axes, last), outer)
	if b.Err == nil {
		b.Do(b.S.Reorder(u.Out, append(slices.Clone(blocks), thread)...))
	}
	block := b.Fuse(u.Out, blocks)
	elementwise.Bind(b, u.Out, block, thread)
	for _, o := range slices.Backward(u.Also) {
		b.ComputeAt(o, u.Out, thread)
	}
	if p.along {
		p.exchanged(b, u, last, block)
	} else {
		b.ComputeAt(u.Acc, u.Out, thread)
	}
	sum := each
	if !p.along { // where nothing is exchanged, sums lie in registers on their way to shared memory
		sum, err = b.S.CacheWrite(each)
		b.Do(err)
	}
	p.slices(b, each, sum, last, q)
	b.ComputeAt(each, u.Out, block)
	if b.Err == nil {
		b.Do(b.S.SetScope(each, schedule.Shared))
	}
}

// others are so many axes without one of them.
func others(axes, without int) (list []int) {
	for k := range axes {
		if k != without {
			list = append(list, k)
		}
	}
	return list
}

// exchanged has the threads of a result exchange their sums.
func (p *sums) exchanged(b *nest.Builder, u nest.Unit, last, block int) {
	if b.Err != nil {
		return
	}
	g := b.S.Stages[u.Acc]
	b.Do(b.S.Reorder(u.Acc, append([]int{last}, append(others(len(g.Axes), last), len(g.Axes))...)...))
	b.Mark(func(stage, iter int) error { return b.S.Bind(stage, iter, schedule.ThreadLevel) }, u.Acc, last)
	if len(g.Reduce) == 1 {
		b.Mark(b.S.Shuffle, u.Acc, len(g.Axes))
	}
	b.ComputeAt(u.Acc, u.Out, block)
	if b.Err == nil {
		b.Do(b.S.SetScope(u.Acc, schedule.Shared))
	}
}

// slices gives threads the partial sums of a block's results, each with the stage that adds it up.
func (p *sums) slices(b *nest.Builder, each, sum, last int, q parameters) {
	if b.Err != nil {
		return
	}
	g := b.S.Stages[each]
	lane := len(g.Axes) - 1
	pair := []int{lane, last}
	if p.along {
		pair = []int{last, lane}
	}
	b.Do(b.S.Reorder(each, append(others(lane, last), pair...)...))
	thread := b.Fuse(each, pair)
	b.Mark(func(stage, iter int) error { return b.S.Bind(stage, iter, schedule.ThreadLevel) }, each, thread)
	if sum != each {
		b.ComputeAt(sum, each, thread)
	}
	p.unrolled(b, sum, lane+1+p.step, q)
	if !p.along && b.Err == nil {
		b.Do(b.S.StorageAlign(each, 1)) // threads write a column
	}
}

// unrolled writes terms out.
func (p *sums) unrolled(b *nest.Builder, stage, axis int, q parameters) {
	if q.unroll < 2 || b.Err != nil {
		return
	}
	inner := axis
	if b.S.Stages[stage].AxisVar(axis).Extent > q.unroll {
		_, inner = b.Split(stage, axis, q.unroll, schedule.Peel)
	}
	b.Mark(b.S.Unroll, stage, inner)
}
