package vta

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (x *tile) Apply(s *schedule.Schedule, q parameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	feed := x.feed(b)
	b.Do(s.Pack(x.constant, x.packing(q)))
	weights := sketch.Get(s.CacheRead(x.unit.Acc, 1, sketch.Axes(len(x.window)+2)))
	channel, position := x.results(b, q)
	step := x.sums(b, q)
	x.stage(b, feed, x.unit.Acc, step)
	b.Do(s.SetScope(x.unit.Acc, schedule.Shared))
	if q.slots > 1 {
		b.Do(s.Pipeline(feed, q.slots))
	}
	if q.resident == 1 {
		x.stage(b, weights, x.unit.Out, channel)
	} else {
		x.stage(b, weights, x.unit.Acc, step)
	}
	x.operands(b, channel, position)
	return nil
}

// stage computes a copy at a loop, in a scratchpad.
func (x *tile) stage(b *sketch.Builder, id, consumer, iter int) {
	b.ComputeAt(id, consumer, iter)
	b.Do(b.S.SetScope(id, schedule.Shared))
}

// feed returns the stage from which the sums read inputs. Terms are extended to whole blocks.
func (x *tile) feed(b *sketch.Builder) int {
	feeds := x.unit.Feeds
	if x.terms%block != 0 {
		copies := sketch.Get(b.S.Extend(x.unit.Acc, block))
		for _, f := range feeds {
			b.Do(b.S.Inline(f))
		}
		feeds = copies[:1]
	}
	if len(feeds) > 0 {
		return feeds[0]
	}
	return sketch.Get(b.S.CacheRead(x.unit.Acc, 0, sketch.Axes(len(x.extents)+1)))
}

// results builds the loops over the results. It returns the loop over tiles of channels and the innermost one over
// tiles.
func (x *tile) results(b *sketch.Builder, q parameters) (channel, last int) {
	out, n := x.unit.Out, len(x.positions)
	channel, inside := b.Split(out, n, q.channels*block, schedule.Guard)
	blocks, lanes := b.Split(out, inside, block, schedule.Peel)
	var outer, inner []int
	for k := range n {
		if size := x.along(k, q); k >= n-2 {
			o, i := b.Split(out, k, size, schedule.Peel)
			outer, inner = append(outer, o), append(inner, i)
		} else {
			outer = append(outer, k)
		}
	}
	if q.order == channelsOutside {
		outer = slices.Insert(outer, 0, channel)
	} else {
		outer = append(outer, channel)
	}
	b.Do(b.S.Reorder(out, slices.Concat(outer, inner, []int{blocks, lanes})...))
	last = outer[len(outer)-1]
	b.ComputeAt(x.unit.Acc, out, last)
	return channel, last
}

// sums builds the loops of the sums of a tile, and returns the one over its steps.
func (x *tile) sums(b *sketch.Builder, q parameters) (step int) {
	acc, n := x.unit.Acc, len(x.positions)
	blocks, lanes := b.Split(acc, n, block, schedule.Peel)
	step, inside := b.Split(acc, n+1+len(x.window), q.depth*block, schedule.Peel)
	depth, terms := b.Split(acc, inside, block, schedule.Peel)
	order := []int{step}
	for k := range x.window {
		order = append(order, n+1+k)
	}
	order = append(order, depth)
	order = append(order, sketch.Axes(n)...)
	b.Do(b.S.Reorder(acc, append(order, blocks, terms, lanes)...))
	b.Do(b.S.Tensorize(acc, terms, schedule.I8))
	return step
}

// operands stages the other operands of the epilogue: those of channels for all positions, others for each tile.
func (x *tile) operands(b *sketch.Builder, channel, position int) {
	for _, t := range x.reads {
		id := sketch.Get(b.S.CacheRead(x.unit.Out, slices.Index(b.S.Stages[x.unit.Out].Operands(), t), sketch.Axes(len(t.Shape))))
		at := position
		if len(t.Shape) == 1 && len(x.positions) > 0 {
			at = channel
		}
		x.stage(b, id, x.unit.Out, at)
	}
}
