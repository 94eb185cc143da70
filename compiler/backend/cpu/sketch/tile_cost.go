package sketch

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// inlined is the cycles that an operation costs that is done again at each load: a multiplication and an addition
	// are one, and some hide behind the sums.
	inlined = 0.25
	// borderCheck is the cycles that a load costs more that a tile at a border may not do, crossingCheck one in a tile
	// whose positions are in several rows.
	borderCheck, crossingCheck = 1, 3
)

// Cost implements space.Structure: the cycles of the tiles, those of its tiles, those that wait for memory, those that
// compute what feeds the reduction, and what is lost because the workers' shares differ.
func (x *tile) Cost(p tileParameters) float64 {
	x = x.chosen(p)
	t, z := x.target, x.sizes(p)
	if x.vec < 0 {
		return float64(product(x.reduce))
	}
	n := x.nest(z, p)
	list := x.accesses
	if z.pack {
		list = x.packed()
	}
	work := x.arithmetic(t, z, 0) + n.waiting(t, slices.Concat(list, x.ends)) + x.cold(t, z)
	work = max(work, x.arithmetic(t, z, machine.ResultLatency)) // sums are waited for while memory is, too
	work += x.feedCycles(t, z, p, n)
	if z.pack {
		work += x.copyCycles(t, n)
	}
	chunks, workers := float64(x.chunks(z)), float64(machine.Workers(t))
	work += machine.ChunkStart*chunks + x.results.cost(t, p.stream)
	share := math.Ceil(chunks/workers) / chunks
	if chunks == 1 || workers == 1 {
		return work * share
	}
	return work*share + machine.Region(t)
}

// arithmetic is the cycles of all tiles, were every load a hit in the first cache, and a sum could be added to again
// after so many.
func (x *tile) arithmetic(t *target.Target, z sizes, latency float64) float64 {
	width := z.tv * x.lanes
	cycles := float64(x.extent(x.vec)/width) * x.tileCycles(t, float64(z.tv), z, latency)
	if rest := x.extent(x.vec) % width; rest > 0 {
		// A vector that is cut short is computed in parts of 4, 2 and 1 lanes.
		parts := rest/x.lanes + int64(bits.OnesCount64(uint64(rest%x.lanes)))
		cycles += x.tileCycles(t, float64(parts), z, latency)
	}
	return x.places(z) * cycles
}

// places is how many tiles there are along the axes other than that of the vectors.
func (x *tile) places(z sizes) float64 {
	n := float64(ceilDiv(x.extent(x.col), z.tw) * ceilDiv(x.extent(x.row), z.th))
	for k, e := range x.extents {
		if k != x.vec && k != x.col && k != x.row {
			n *= float64(e)
		}
	}
	return n
}

// tileCycles is the cycles of one tile: of each step of its reduction, of the loops around them, and of its beginning
// and end.
func (x *tile) tileCycles(t *target.Target, tv float64, z sizes, latency float64) float64 {
	if x.writtenOut(z) {
		return x.windowCycles(t, tv, z)
	}
	positions := float64(z.th * z.tw)
	acc := tv * positions
	loads := 0.0
	if x.loadsShared {
		loads += tv
		if z.pf > 0 {
			loads += tv / 2
		}
	}
	if x.loadsScalar {
		loads += positions
	}
	if x.loadsOwn {
		// What one step loads the next may use again: it stays in a register while there are some left. A line of
		// which a tile uses only a part is loaded again for the others.
		parts := min(1, tv*float64(t.CPU.VectorBytes)/float64(machine.Line(t)))
		loads += acc*(1.5-0.5*parts) + machine.Spilled(t, acc)
	}
	if x.loadsShared && x.loadsScalar {
		loads += machine.Crowded(t, acc, tv, z.ku)
	}
	if spilled := positions - machine.AddressRegisters(t); len(x.joint) > 0 && spilled > 0 {
		loads += 2 * spilled // its address comes back from the stack
	}
	busy, operations := acc/2, acc
	if x.dot != nil {
		busy, operations = acc*x.dot.slots, acc*x.dot.operations
	}
	step := max(busy, loads*machine.LoadSlot, latency, (operations+loads+2/float64(z.ku))/machine.Issue)
	step += machine.Hidden*min(busy, loads*machine.LoadSlot) + 0.5/float64(z.ku)
	steps := float64(product(x.steps))
	exits := 0.0
	if last := x.innermost(z); last > z.ku {
		exits = steps / float64(last)
	}
	return steps*step + exits*machine.LoopExit + (2.5+float64(len(x.ends)))*acc + 12
}

// cold is the cycles until all packed constants have come from memory.
func (x *tile) cold(t *target.Target, z sizes) float64 {
	if len(x.packs) == 0 {
		return 0
	}
	bytes := float64(product(x.steps)*ceilDiv(x.extent(x.vec), x.lanes)) * float64(t.CPU.VectorBytes)
	lines := bytes / float64(machine.Line(t))
	if work := float64(z.th*z.tw) / 2 * float64(t.CPU.CacheLineBytes) / float64(max(1, t.CPU.VectorBytes)); z.pf > 0 && work >= machine.StreamedWork {
		return lines * (machine.PrefetchedLine + math.Abs(math.Log2(float64(z.pf)/1024))/10)
	}
	return lines * machine.ColdLine
}

// innermost is how many steps the innermost loop of the reduction has, unrolled ones included.
func (x *tile) innermost(z sizes) int64 {
	last := x.steps[len(x.steps)-1]
	if z.kb > 0 {
		last = min(last, z.kb)
	}
	for k := len(x.steps) - 2; k >= 0 && last <= z.ku && z.kb == 0; k-- {
		last *= x.steps[k] // the innermost loop is written out whole
	}
	return last
}

// nest is the loops around a tile, innermost first, as far as they matter to caches: which axis each moves, and how
// often.
type nest struct {
	// tile has the extents of all axes within a tile, limits those of the workload.
	tile, limits []int64
	loops        []trip
}

type trip struct {
	axis  int
	times int64
}

func (x *tile) nest(z sizes, p tileParameters) nest {
	n := nest{limits: append(append([]int64{}, x.extents...), x.reduce...)}
	for range x.extents {
		n.tile = append(n.tile, 1)
	}
	n.tile = append(n.tile, x.reduce...)
	within := func(axis int, size int64) {
		if axis >= 0 {
			n.tile[axis] = min(size, n.limits[axis])
		}
	}
	within(x.vec, z.tv*x.lanes)
	within(x.col, z.tw)
	within(x.row, z.th)
	rowTiles, colTiles := z.rowTiles, ceilDiv(x.extent(x.col), z.tw)
	rowBlocks, blocked := ceilDiv(x.extent(x.row), z.th)/z.rowTiles, x.row
	if x.row < 0 {
		rowTiles, rowBlocks, blocked = 1, colTiles/z.rowTiles, x.col
		colTiles = z.rowTiles
	}
	vecBlocks := ceilDiv(x.extent(x.vec), z.tv*x.lanes) / z.vecTiles
	positions := []trip{{x.col, colTiles}, {x.row, rowTiles}}
	vectors := trip{x.vec, z.vecTiles}
	if z.inner == 0 {
		n.loops = append([]trip{vectors}, positions...)
	} else {
		n.loops = append(positions, vectors)
	}
	if p.outer == 0 {
		n.loops = append(n.loops, trip{x.vec, vecBlocks}, trip{blocked, rowBlocks})
	} else {
		n.loops = append(n.loops, trip{blocked, rowBlocks}, trip{x.vec, vecBlocks})
	}
	for k, e := range x.extents {
		if k != x.vec && k != x.col && k != x.row {
			n.loops = append(n.loops, trip{k, e})
		}
	}
	return n
}

// waiting is the cycles spent on filling caches. Going outwards, what a loop's iterations share stays in a cache that
// holds all that one iteration touches, and is filled anew each time in one that does not.
func (n nest) waiting(t *target.Target, list []access) float64 {
	total := 0.0
	line := machine.Line(t)
	fills := make([]float64, len(list))
	inner, outer := make([]float64, len(list)), make([]float64, len(list))
	for depth, l := range machine.Levels(t) {
		extents := append([]int64{}, n.tile...)
		sum := touch(l.Pages, list, extents, line, inner)
		copy(fills, inner)
		for _, loop := range n.loops {
			if loop.axis < 0 || loop.times <= 1 {
				continue
			}
			extents[loop.axis] = min(extents[loop.axis]*loop.times, n.limits[loop.axis])
			grown := touch(l.Pages, list, extents, line, outer)
			for k := range fills {
				if sum <= l.Capacity {
					fills[k] *= outer[k] / inner[k]
				} else {
					fills[k] *= float64(loop.times)
				}
			}
			sum = grown
			inner, outer = outer, inner
		}
		if l.Shared && sum <= l.Capacity {
			continue
		}
		if depth > 0 && !l.Pages && sum > l.Capacity { // the first cache is filled as fast from any line of the second
			n.scatter(list, fills, line)
		}
		for k, f := range fills {
			if list[k].packed && !l.Pages {
				f *= machine.Ahead * machine.Wide(t)
			}
			total += f * l.Cycles
		}
	}
	return total
}

// scatter raises the fills of accesses whose lines lie apart: of the lines that follow them, a cache fetches some in
// vain.
func (n nest) scatter(list []access, fills []float64, line int64) {
	run := append([]int64{}, n.tile...)
	if v := n.loops[0]; v.axis >= 0 {
		run[v.axis] = min(run[v.axis]*v.times, n.limits[v.axis])
	}
	for k := range fills {
		fills[k] *= 1 + machine.Apart/max(1, float64(list[k].run(run))/float64(line))
	}
}

// touch puts the lines or pages that each access touches into each, and returns their sum.
func touch(inPages bool, list []access, extents []int64, lineBytes int64, each []float64) float64 {
	sum := 0.0
	for k := range list {
		lines, pages := list[k].touched(extents, lineBytes)
		each[k] = lines
		if inPages {
			each[k] = pages
		}
		sum += each[k]
	}
	return sum
}

// feedCycles is what computing the stages that feed the reduction costs, where the settings put them.
func (x *tile) feedCycles(t *target.Target, z sizes, p tileParameters, n nest) float64 {
	if x.fed == nil {
		return 0
	}
	extents := append([]int64{}, n.tile...)
	times := 1.0
	switch p.feed {
	case feedInline:
		return x.inlineCycles(t, z)
	case feedRoot:
		copy(extents, n.limits)
	case feedBlock:
		for k, loop := range n.loops {
			if loop.axis >= 0 && k < 3 {
				extents[loop.axis] = min(extents[loop.axis]*loop.times, n.limits[loop.axis])
			} else {
				times *= float64(loop.times)
			}
		}
	case feedTile:
		x.wholeRows(extents, z)
		for _, loop := range n.loops {
			times *= float64(loop.times)
		}
	}
	elements := 1.0
	for d := range x.fed.shape {
		elements *= float64(x.fed.extent(d, extents))
	}
	lanes := float64(max(1, int64(t.CPU.VectorBytes)/x.fed.elementBytes))
	cycles := times * elements / lanes * (1.5*machine.Wide(t) + 0.5*float64(x.feedOps))
	if p.feed == feedRoot { // to the second cache and back, and a region of its own
		return 2*cycles + machine.Region(t)
	}
	return cycles + 60*times
}

// wholeRows widens the extents of a tile that may go on in the next row to all rows that it may touch: which part of
// them it needs is not known before it runs, so what feeds it is computed for all of them.
func (x *tile) wholeRows(extents []int64, z sizes) {
	if x.crosses(z) {
		extents[x.col] = min(x.extent(x.col), ((z.tw-1)/x.rowOf()+2)*x.rowOf())
	}
}

// crosses reports whether tiles may go on in the next row.
func (x *tile) crosses(z sizes) bool {
	if len(x.joint) == 0 {
		return false
	}
	row := x.rowOf()
	return row%z.tw != 0 && z.tw%row != 0
}

// rowOf is how many positions of the joint axes lie in a row.
func (x *tile) rowOf() int64 { return x.accesses[0].rows[x.joint[len(x.joint)-1]] }

// inlineCycles is what a feed that is computed at every load costs: its arithmetic each time, and, for padding, the
// tiles at the borders, which check every load. Those that may go on in the next row all do, and position by position.
func (x *tile) inlineCycles(t *target.Target, z sizes) float64 {
	if x.writtenOut(z) {
		vectors := float64(ceilDiv(x.extent(x.vec), x.lanes))
		return inlined * float64(x.feedOps) * x.windowLoads(t, 1, z) * vectors * x.places(z)
	}
	loads := float64(product(x.extents)*product(x.reduce)) / float64(x.lanes)
	if x.loadsScalar {
		loads = float64(product(x.extents)/x.extent(x.vec)*product(x.reduce)) * float64(ceilDiv(x.extent(x.vec), z.tv*x.lanes))
	}
	checks := borderCheck * min(1, 2/float64(ceilDiv(x.extent(x.row), z.th)))
	switch {
	case x.crosses(z):
		checks = crossingCheck
	case len(x.joint) > 0:
		checks = borderCheck * min(1, 2*float64(x.rowOf())/float64(x.extent(x.col)))
	}
	return loads * (inlined*float64(x.feedOps) + checks)
}
