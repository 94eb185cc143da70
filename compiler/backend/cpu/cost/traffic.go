package cost

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
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
	// Touched is all memory touched of it; during the walk outwards, what one loop touches.
	Touched Touch
}

// Around is a loop around a tile.
type Around struct {
	Trips float64
	// Axes holds how many values of each axis the loop covers together with those inside it.
	Axes []float64
}

// Follow returns the traffic of a tile that covers the given number of values of each axis, within loops, innermost
// first. Data shared by iterations stays in a cache that holds everything one iteration touches, and is refilled each
// time in a smaller one. Buffers keep the order of the accesses.
func Follow(t *target.Target, accesses []Access, tile []float64, loops []Around) Traffic {
	f := follower{levels: microarch.Levels(t), line: microarch.Line(t)}
	f.Buffers, f.Loops = make([]Buffer, len(accesses)), make([]Loop, 0, len(loops)+1)
	for k := range accesses {
		f.Buffers[k].Access = &accesses[k]
	}
	f.follow(tile, loops)
	return f.Traffic
}

// traffic returns the traffic of a statement.
func (a *Analysis) traffic(k int) Traffic {
	x := &a.Statements[k]
	f := follower{levels: a.Levels, line: microarch.Line(a.Target)}
	f.Traffic = Traffic{Loops: x.Traffic.Loops, Buffers: a.buffers(x, x.Traffic.Buffers)}
	f.follow(x.Tile.axes, a.around(k))
	return f.end(x.Filled)
}

// around returns the loops around a statement's tile, innermost first.
func (a *Analysis) around(k int) []Around {
	x := &a.Statements[k]
	a.loops = a.loops[:0]
	for p := x.Tile.first - 1; p >= 0; p-- {
		axes := a.room.take(len(x.Nest.Axes))
		x.Nest.within(p, axes, &a.room)
		a.loops = append(a.loops, Around{x.Nest.loops[p].trips, axes})
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
			a.loops = append(a.loops, Around{c.Nest.loops[p].trips, axes})
		}
	}
	return a.loops
}

// whole returns all values of a statement's axes.
func (a *Analysis) whole(x *Statement) []float64 {
	axes := a.room.take(len(x.Nest.Axes))
	for k := range axes {
		axes[k] = float64(x.Nest.Stage.AxisVar(k).Extent)
	}
	return axes
}

// buffers appends the tensors in memory that a statement accesses to a list.
func (a *Analysis) buffers(x *Statement, list []Buffer) []Buffer {
	for i := range x.Reads {
		r, owner := &x.Reads[i], (*Statement)(nil)
		if r.Producer >= 0 {
			owner = &a.Statements[r.Producer]
		}
		list = a.buffer(list, r, owner)
	}
	return a.buffer(list, &x.Result, x)
}

// buffer appends the tensor of an access unless it stays in registers. owner is the statement that computes it, or
// nil.
func (a *Analysis) buffer(list []Buffer, x *Access, owner *Statement) []Buffer {
	b := Buffer{Access: x}
	switch {
	case owner == nil || owner.Consumer < 0:
	case a.inRegisters(owner):
		return list
	default:
		b.shape = owner.Nest.Axes[:len(owner.Nest.Stage.Axes)]
	}
	return append(list, b)
}

// follower is the state of the walk outwards.
type follower struct {
	levels []microarch.Level
	line   int64
	Traffic
	sum        Touch // the memory touched by the current loop
	iterations float64
}

// follow walks from a tile through the loops around it.
func (f *follower) follow(tile []float64, loops []Around) {
	f.iterations = product(tile)
	for i := range f.Buffers {
		b := &f.Buffers[i]
		b.Touched = b.Access.touched(tile, b.shape, f.line)
		f.sum = f.sum.plus(b.Touched)
		for s, store := range f.levels {
			b.Fills[s] = b.Touched.Of(store.Pages)
		}
	}
	f.Loops = append(f.Loops, Loop{f.iterations, f.sum})
	for _, l := range loops {
		if l.Trips > 1 {
			f.loop(l.Trips, l.Axes)
		}
	}
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
	var sum Touch
	for i := range f.Buffers {
		b := &f.Buffers[i]
		outer := b.Access.touched(axes, b.shape, f.line)
		sum = sum.plus(outer)
		if b.Distance == 0 && outer.Bytes < 0.9*trips*b.Touched.Bytes {
			b.Distance = f.sum.Bytes
		}
		for s, store := range f.levels {
			b.Fills[s] *= store.Growth(f.sum.Of(store.Pages), b.Touched.Of(store.Pages), outer.Of(store.Pages), trips)
		}
		b.Touched = outer
	}
	f.sum = sum
	f.iterations *= trips
	f.Loops = append(f.Loops, Loop{f.iterations, sum})
}

// end returns the totals of a nest that runs the given fraction of its iterations.
func (f *follower) end(filled float64) Traffic {
	for s, store := range f.levels {
		for i := range f.Buffers {
			b := &f.Buffers[i]
			if store.Shared && f.sum.Lines <= store.Capacity && b.Access.Tensor.Role != expr.Constant {
				b.Fills[s] = 0
			}
			b.Fills[s] *= filled
			f.Fills[s] += b.Fills[s]
		}
	}
	// The largest demand comes first.
	slices.SortStableFunc(f.Buffers, func(p, q Buffer) int { return cmp.Compare(q.Fills[0], p.Fills[0]) })
	return f.Traffic
}
