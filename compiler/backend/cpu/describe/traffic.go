package describe

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxStores bounds the levels of a memory hierarchy.
const maxStores = 4

// traffic is what a statement asks of memory.
type traffic struct {
	// levels are the loops around its tile, innermost first, its consumers' too.
	levels []level
	// fills is how many lines, or pages, come into each store, in the order of machine.Levels.
	fills [maxStores]float64
	// buffers are its tensors, in the order of reads, then the result.
	buffers []buffer
}

// level is one loop around a statement.
type level struct {
	// iterations of the statement within the loop.
	iterations float64
	touch      touch
}

// buffer is a tensor that a statement reads or stores.
type buffer struct {
	access *access
	// shape is that of a buffer that holds a part of it; nil where it lies in memory whole.
	shape []float64
	// fills is as those of the traffic.
	fills [maxStores]float64
	// distance is the bytes that are touched until something of it is touched again; 0 where nothing is.
	distance float64
	// inner and outer are what is touched within a loop and the next one; at the end inner is all that is touched.
	inner, outer touch
}

// traffic follows the loops around a statement outwards: what their iterations share stays in a store that holds all
// that one iteration touches, and is filled anew each time in one that does not.
func (a *analysis) traffic(k int) traffic {
	x := &a.statements[k]
	f := follower{a: a, x: x, line: a.line()}
	f.buffers(&x.trace)
	f.begin()
	for p := x.inner.first - 1; p >= 0; p-- {
		axes := a.room.take(len(x.nest.axes))
		x.nest.within(p, axes, &a.room)
		f.loop(x.nest.loops[p].trips, axes)
	}
	for at := x; at.consumer >= 0; at = &a.statements[at.consumer] {
		c := &a.statements[at.consumer]
		for p := at.at; p >= 0; p-- {
			var axes []float64
			switch {
			case p > 0:
				axes = c.needs[p-1][k]
			case c.consumer >= 0:
				axes = a.statements[c.consumer].needs[c.at][k]
			default:
				axes = a.whole(x)
			}
			f.loop(c.nest.loops[p].trips, axes)
		}
	}
	return f.end()
}

// whole is all values of a statement's axes.
func (a *analysis) whole(x *statement) []float64 {
	axes := a.room.take(len(x.nest.axes))
	for k := range axes {
		axes[k] = float64(x.nest.stage.AxisVar(k).Extent)
	}
	return axes
}

// follower is the state on the way outwards.
type follower struct {
	a    *analysis
	x    *statement
	line int64
	traffic
	sum        touch // what the loop so far touches
	iterations float64
}

// buffers lists what lies in memory, with the slices of the last candidate.
func (f *follower) buffers(last *traffic) {
	f.traffic = traffic{levels: last.levels[:0], buffers: last.buffers[:0]}
	for i := range f.x.reads {
		r := &f.x.reads[i]
		var shape []float64
		if r.producer >= 0 {
			p := &f.a.statements[r.producer]
			if f.a.inRegisters(p) {
				continue
			}
			if p.consumer >= 0 {
				shape = p.nest.axes[:len(p.nest.stage.Axes)]
			}
		}
		f.traffic.buffers = append(f.traffic.buffers, buffer{access: r, shape: shape})
	}
	if !f.a.inRegisters(f.x) {
		var shape []float64
		if f.x.consumer >= 0 {
			shape = f.x.nest.axes[:len(f.x.nest.stage.Axes)]
		}
		f.traffic.buffers = append(f.traffic.buffers, buffer{access: &f.x.result, shape: shape})
	}
}

// begin is at the tile.
func (f *follower) begin() {
	f.iterations = product(f.x.inner.axes)
	for i := range f.traffic.buffers {
		b := &f.traffic.buffers[i]
		b.inner = b.access.touched(f.x.inner.axes, b.shape, f.line)
		f.sum = f.sum.plus(b.inner)
		for s, store := range f.a.stores {
			b.fills[s] = b.inner.of(store.Pages)
		}
	}
	f.levels = append(f.levels, level{f.iterations, f.sum})
}

// of is the lines or the pages.
func (t touch) of(pages bool) float64 {
	if pages {
		return t.pages
	}
	return t.lines
}

// loop goes on to the next loop, in which the axes run over so many values.
func (f *follower) loop(trips float64, axes []float64) {
	if trips <= 1 {
		return
	}
	var sum touch
	for i := range f.traffic.buffers {
		b := &f.traffic.buffers[i]
		b.outer = b.access.touched(axes, b.shape, f.line)
		sum = sum.plus(b.outer)
		if b.distance == 0 && b.outer.bytes < 0.9*trips*b.inner.bytes {
			b.distance = f.sum.bytes
		}
	}
	for s, store := range f.a.stores {
		holds := f.sum.of(store.Pages) <= store.Capacity
		for i := range f.traffic.buffers {
			b := &f.traffic.buffers[i]
			if holds {
				b.fills[s] *= max(1, b.outer.of(store.Pages)/b.inner.of(store.Pages))
			} else {
				b.fills[s] *= trips
			}
		}
	}
	for i := range f.traffic.buffers {
		b := &f.traffic.buffers[i]
		b.inner = b.outer
	}
	f.sum = sum
	f.iterations *= trips
	f.levels = append(f.levels, level{f.iterations, sum})
}

// end adds up.
func (f *follower) end() traffic {
	for s, store := range f.a.stores {
		for i := range f.traffic.buffers {
			b := &f.traffic.buffers[i]
			if store.Shared && f.sum.lines <= store.Capacity && !b.cold() {
				b.fills[s] = 0
			}
			b.fills[s] *= f.x.filled
			f.fills[s] += b.fills[s]
		}
	}
	// What asks most of memory comes first.
	slices.SortStableFunc(f.traffic.buffers, func(p, q buffer) int {
		switch {
		case p.fills[0] > q.fills[0]:
			return -1
		case p.fills[0] < q.fills[0]:
			return 1
		}
		return 0
	})
	return f.traffic
}

// cold reports whether the values were last read one execution of the model ago.
func (b *buffer) cold() bool { return b.access.tensor.Role == expr.Constant }
