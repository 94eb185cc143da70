package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (p *patches) Apply(s *schedule.Schedule, q windowsParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	thread, own := p.results(b, q)
	for _, o := range slices.Backward(p.unit.Also) {
		b.ComputeAt(o, p.unit.Out, thread)
	}
	b.ComputeAt(p.unit.Acc, p.unit.Out, thread)
	patch := p.patch(b)
	b.ComputeAt(patch, p.unit.Out, thread)
	if len(own) > 0 || q.tall*q.wide > 1 {
		p.unrolled(b, patch)
	}
	p.unrolled(b, p.unit.Acc)
	for _, o := range p.unit.Also {
		p.unrolled(b, o)
	}
	for _, f := range p.unit.Feeds {
		if f != p.feed {
			Alone(b, f)
		}
	}
	return nil
}

// results builds the loops over the results. All tiles of all channels form one axis, which is divided into blocks.
func (p *patches) results(b *sketch.Builder, q windowsParameters) (thread int, own []int) {
	out := p.unit.Out
	var all []int
	for k := range p.extents {
		tile := int64(1)
		switch k {
		case p.down:
			tile = q.tall
		case p.along:
			tile = q.wide
		}
		outer := k
		if tile > 1 {
			var inner int
			outer, inner = b.Split(out, k, tile, schedule.Guard)
			own = append(own, inner)
		}
		all = append(all, outer)
	}
	b.Do(b.S.Reorder(out, append(slices.Clone(all), own...)...))
	b.Mark(b.S.Unroll, out, own...)
	block, thread := b.Split(out, b.Fuse(out, all), q.threads, schedule.Guard)
	Bind(b, out, block, thread)
	return thread, own
}

// patch returns the stage that holds the elements of windows.
func (p *patches) patch(b *sketch.Builder) int {
	if p.feed >= 0 {
		return p.feed
	}
	operands := b.S.Stages[p.unit.Acc].Operands()
	return sketch.Get(b.S.CacheRead(p.unit.Acc, slices.Index(operands, p.window.Tensor), sketch.Axes(len(p.window.Index))))
}

// unrolled unrolls all loops of a stage with those of a reduction outside, so that each term's own data is read once.
func (p *patches) unrolled(b *sketch.Builder, id int) {
	g := b.S.Stages[id]
	var order []int
	for k := range g.Reduce {
		order = append(order, len(g.Axes)+k)
	}
	order = append(order, sketch.Axes(len(g.Axes))...)
	b.Do(b.S.Reorder(id, order...))
	b.Mark(b.S.Unroll, id, order...)
}
