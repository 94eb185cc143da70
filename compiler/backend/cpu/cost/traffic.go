package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxLevels bounds the levels of a memory hierarchy.
const maxLevels = 4

// Traffic is a statement's demand on memory.
type Traffic struct {
	// Loops are those around its tile, innermost first, including its consumers' loops.
	Loops []Loop
	// Fills counts the lines or pages filled into each cache, in the order of microarch.Levels.
	Fills [maxLevels]float64
	// Buffers are its tensors, ordered by their share of the first cache's fills, largest first.
	Buffers []Buffer
}

// Loop is one loop around a statement.
type Loop struct {
	// Iterations counts the statement's iterations within the loop.
	Iterations float64
	// Touch is the memory that these iterations touch together.
	Touch Touch
}

// Buffer is a tensor that a statement reads or stores.
type Buffer struct {
	// Access is one of the statement's reads, or its result.
	Access *Access
	// shape is the shape of a buffer for a part of it; nil if it lies in memory whole.
	shape []float64
	// Fills has the order of Traffic.Fills.
	Fills [maxLevels]float64
	// Distance is the number of bytes touched before a part of it is reused; 0 without reuse.
	Distance float64
	// Touched is all memory touched of it. During the walk outwards it is what one loop touches, and outer what the
	// next loop touches.
	Touched Touch
	outer   Touch
}

// traffic follows the loops around a statement outwards. Data shared by iterations stays in a cache that holds
// everything one iteration touches, and is refilled each time in a smaller one.
func (a *Analysis) traffic(k int) Traffic {
	x := &a.Statements[k]
	f := follower{a: a, x: x, line: microarch.Line(a.Target)}
	f.buffers(&x.Traffic)
	f.begin()
	for p := x.Tile.first - 1; p >= 0; p-- {
		axes := a.room.take(len(x.Nest.Axes))
		x.Nest.within(p, axes, &a.room)
		f.loop(x.Nest.loops[p].trips, axes)
	}
	for at := x; at.Consumer >= 0; at = &a.Statements[at.Consumer] {
		c := &a.Statements[at.Consumer]
		for p := at.at; p >= 0; p-- {
			var axes []float64
			switch {
			case p > 0:
				axes = c.needs[p-1][k]
			case c.Consumer >= 0:
				axes = a.Statements[c.Consumer].needs[c.at][k]
			default:
				axes = a.whole(x)
			}
			f.loop(c.Nest.loops[p].trips, axes)
		}
	}
	return f.end()
}

// whole returns all values of a statement's axes.
func (a *Analysis) whole(x *Statement) []float64 {
	axes := a.room.take(len(x.Nest.Axes))
	for k := range axes {
		axes[k] = float64(x.Nest.Stage.AxisVar(k).Extent)
	}
	return axes
}

// follower is the state of the walk outwards.
type follower struct {
	a    *Analysis
	x    *Statement
	line int64
	Traffic
	sum        Touch // the memory touched by the current loop
	iterations float64
}

// buffers lists the tensors in memory. It reuses the last candidate's slices.
func (f *follower) buffers(last *Traffic) {
	f.Traffic = Traffic{Loops: last.Loops[:0], Buffers: last.Buffers[:0]}
	for i := range f.x.Reads {
		r := &f.x.Reads[i]
		var shape []float64
		if r.Producer >= 0 {
			p := &f.a.Statements[r.Producer]
			if f.a.inRegisters(p) {
				continue
			}
			if p.Consumer >= 0 {
				shape = p.Nest.Axes[:len(p.Nest.Stage.Axes)]
			}
		}
		f.Traffic.Buffers = append(f.Traffic.Buffers, Buffer{Access: r, shape: shape})
	}
	if !f.a.inRegisters(f.x) {
		var shape []float64
		if f.x.Consumer >= 0 {
			shape = f.x.Nest.Axes[:len(f.x.Nest.Stage.Axes)]
		}
		f.Traffic.Buffers = append(f.Traffic.Buffers, Buffer{Access: &f.x.Result, shape: shape})
	}
}

// begin starts at the tile.
func (f *follower) begin() {
	f.iterations = product(f.x.Tile.axes)
	for i := range f.Traffic.Buffers {
		b := &f.Traffic.Buffers[i]
		b.Touched = b.Access.touched(f.x.Tile.axes, b.shape, f.line)
		f.sum = f.sum.plus(b.Touched)
		for s, store := range f.a.Levels {
			b.Fills[s] = b.Touched.Of(store.Pages)
		}
	}
	f.Loops = append(f.Loops, Loop{f.iterations, f.sum})
}

// Of returns the lines or the pages.
func (t Touch) Of(pages bool) float64 {
	if pages {
		return t.Pages
	}
	return t.Lines
}

// loop advances to the next loop, in which the axes run over the given number of values.
func (f *follower) loop(trips float64, axes []float64) {
	if trips <= 1 {
		return
	}
	var sum Touch
	for i := range f.Traffic.Buffers {
		b := &f.Traffic.Buffers[i]
		b.outer = b.Access.touched(axes, b.shape, f.line)
		sum = sum.plus(b.outer)
		if b.Distance == 0 && b.outer.Bytes < 0.9*trips*b.Touched.Bytes {
			b.Distance = f.sum.Bytes
		}
	}
	for s, store := range f.a.Levels {
		for i := range f.Traffic.Buffers {
			b := &f.Traffic.Buffers[i]
			inner, outer := b.Touched.Of(store.Pages), b.outer.Of(store.Pages)
			b.Fills[s] *= store.Growth(f.sum.Of(store.Pages), inner, max(inner, outer), trips)
		}
	}
	for i := range f.Traffic.Buffers {
		b := &f.Traffic.Buffers[i]
		b.Touched = b.outer
	}
	f.sum = sum
	f.iterations *= trips
	f.Loops = append(f.Loops, Loop{f.iterations, sum})
}

// end returns the totals.
func (f *follower) end() Traffic {
	for s, store := range f.a.Levels {
		for i := range f.Traffic.Buffers {
			b := &f.Traffic.Buffers[i]
			if store.Shared && f.sum.Lines <= store.Capacity && b.Access.Tensor.Role != expr.Constant {
				b.Fills[s] = 0
			}
			b.Fills[s] *= f.x.Filled
			f.Fills[s] += b.Fills[s]
		}
	}
	// The largest demand comes first.
	slices.SortStableFunc(f.Traffic.Buffers, func(p, q Buffer) int {
		switch {
		case p.Fills[0] > q.Fills[0]:
			return -1
		case p.Fills[0] < q.Fills[0]:
			return 1
		}
		return 0
	})
	return f.Traffic
}
