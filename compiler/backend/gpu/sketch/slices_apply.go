package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (p *sums) Apply(s *schedule.Schedule, q slicesParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	for _, f := range p.unit.Feeds {
		Alone(b, f)
	}
	x := slicing{Unit: p.unit, last: p.last, step: p.step, along: p.along, side: q.side, across: q.across, unroll: q.unroll}
	if q.parts > 1 {
		p.divide(b, &x, q.parts)
	}
	x.apply(b)
	return nil
}

// divide makes partial sums a unit of their own, and makes threads add them up in a later launch.
func (p *sums) divide(b *sketch.Builder, x *slicing, parts int64) {
	part, length := schedule.Planes, sketch.CeilDiv(p.extent, parts)
	if p.few { // neighbouring threads add up adjacent parts
		part = schedule.Pieces
	}
	partial := sketch.Get(b.S.RFactor(p.unit.Acc, p.step, length, part))
	acc := sketch.Get(b.S.CacheWrite(partial))
	x.Unit = sketch.Unit{Out: partial, Acc: acc}
	if !p.few {
		x.last++
	}
	p.addParts(b, sketch.CeilDiv(p.extent, length))
}

// addParts makes threads add up the parts of each sum.
func (p *sums) addParts(b *sketch.Builder, parts int64) {
	x := slicing{Unit: p.unit, last: p.last, along: true, side: 128, across: p.adders(parts), unroll: 1}
	switch {
	case x.across > 1:
		x.side = 1
	case p.few:
		x.unroll = ahead
	}
	x.apply(b)
}

// slicing describes how blocks compute a unit's results and sums.
type slicing struct {
	sketch.Unit
	// last is the axis along which a block has side results, or -1.
	last int
	// step is the index of the reduction axis that across threads share; along is set if its terms are contiguous.
	step         int
	along        bool
	side, across int64
	// unroll is the number of unrolled terms.
	unroll int64
}

// apply builds the nests of the results, of which a block has some along an axis, and of the sums.
func (x *slicing) apply(b *sketch.Builder) {
	axes := len(b.S.Stages[x.Out].Axes)
	if x.across == 1 {
		Results(b, x.Unit, axes, x.side, 1)
		x.unrolled(b, x.Acc, axes+x.step)
		return
	}
	each := x.factor(b, x.step, x.across, schedule.Lanes)
	ofWarps := -1
	if x.along && x.across > warpThreads {
		ofWarps = x.factor(b, 0, warpThreads, schedule.Pieces)
	}
	block, thread := x.results(b, axes)
	if x.along {
		x.exchanged(b, ofWarps, block)
	} else {
		b.ComputeAt(x.Acc, x.Out, thread)
	}
	sum := each
	if !x.along { // without an exchange, sums are in registers before they go to shared memory
		sum = sketch.Get(b.S.CacheWrite(each))
	}
	x.slices(b, each, sum)
	inBlock(b, each, x.Out, block)
}

// factor assigns partial sums to threads or warps.
func (x *slicing) factor(b *sketch.Builder, k int, factor int64, part schedule.Part) int {
	return sketch.Get(b.S.RFactor(x.Acc, k, factor, part))
}

// results assigns adjacent results to the threads of a block.
func (x *slicing) results(b *sketch.Builder, axes int) (block, thread int) {
	last := x.line(b, x.Out)
	outer, thread := b.Split(x.Out, last, x.side, schedule.Peel)
	blocks := append(others(axes, last), outer)
	b.Do(b.S.Reorder(x.Out, append(slices.Clone(blocks), thread)...))
	block = b.Fuse(x.Out, blocks)
	Bind(b, x.Out, block, thread)
	for _, o := range slices.Backward(x.Also) {
		b.ComputeAt(o, x.Out, thread)
	}
	return block, thread
}

// line returns a stage's iterator over the results of a block: an axis, or a loop of one iteration.
func (x *slicing) line(b *sketch.Builder, stage int) int {
	if x.last < 0 {
		return sketch.Get(b.S.UnitLoop(stage))
	}
	return x.last
}

// others returns the axes except one of them.
func others(axes, without int) (list []int) {
	for k := range axes {
		if k != without {
			list = append(list, k)
		}
	}
	return list
}

// exchanged makes the threads of a result exchange their sums. If there are several warps, one thread adds up their
// sums.
func (x *slicing) exchanged(b *sketch.Builder, ofWarps, block int) {
	axes, last := len(b.S.Stages[x.Acc].Axes), x.line(b, x.Acc)
	b.Do(b.S.Reorder(x.Acc, append([]int{last}, append(others(axes, last), axes)...)...))
	b.Do(b.S.Bind(x.Acc, last, schedule.ThreadLevel))
	if ofWarps < 0 {
		b.Mark(b.S.Shuffle, x.Acc, axes)
	}
	inBlock(b, x.Acc, x.Out, block)
	if ofWarps >= 0 {
		x.paired(b, ofWarps, true)
		b.Mark(b.S.Shuffle, ofWarps, axes+1)
		inBlock(b, ofWarps, x.Out, block)
	}
}

// slices assigns partial sums of a block's results to threads, each with the stage that adds it up.
func (x *slicing) slices(b *sketch.Builder, each, sum int) {
	lane, thread := x.paired(b, each, x.along)
	if sum != each {
		b.ComputeAt(sum, each, thread)
	}
	x.unrolled(b, sum, lane+1+x.step)
	if !x.along {
		b.Do(b.S.StorageAlign(each, 1)) // threads write a column
	}
}

// paired assigns partial sums of a block's results, a stage's last axis, to threads: either the sums of one result
// after another, or those of all results.
func (x *slicing) paired(b *sketch.Builder, stage int, along bool) (lane, thread int) {
	lane = len(b.S.Stages[stage].Axes) - 1
	last := x.line(b, stage)
	pair := []int{lane, last}
	if along {
		pair = []int{last, lane}
	}
	b.Do(b.S.Reorder(stage, append(others(lane, last), pair...)...))
	thread = b.Fuse(stage, pair)
	b.Do(b.S.Bind(stage, thread, schedule.ThreadLevel))
	return lane, thread
}

// unrolled unrolls terms.
func (x *slicing) unrolled(b *sketch.Builder, stage, axis int) {
	if x.unroll < 2 {
		return
	}
	inner := axis
	if b.S.Stages[stage].AxisVar(axis).Extent > x.unroll {
		_, inner = b.Split(stage, axis, x.unroll, schedule.Peel)
	}
	b.Mark(b.S.Unroll, stage, inner)
}

// inBlock computes a stage in the blocks of another, whose threads share it.
func inBlock(b *sketch.Builder, stage, in, block int) {
	b.ComputeAt(stage, in, block)
	b.Do(b.S.SetScope(stage, schedule.Shared))
}
