package sketch

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/footprint"
	"github.com/tilth-dev/tilth/compiler/target"
)

// The machine that the cost has in mind: two multiply-adds and two loads of vectors a cycle, four cycles from one
// multiply-add to the next that needs its result, and half of one lost on the way. These hold, within a fifth, for the
// cores of servers and laptops of the last decade.
const (
	multiplyAddLatency = 4.5
	issueWidth         = 5
	// loadSlot is what a load takes where loads are what bounds a loop: a little more than half a cycle, since two
	// seldom meet.
	loadSlot = 0.56
	// hidden is the part of the smaller of arithmetic and loads that the larger does not hide.
	hidden = 0.15
	// coldLine is what a line of a constant takes from memory, where it was left since the last execution; a prefetch
	// hides a part where there is arithmetic to hide it behind.
	coldLine, prefetchedLine = 8, 5
	// streamedWork is the cycles of arithmetic on a line of a constant below which a kernel does nothing but read it:
	// then the processor's own prefetching keeps up, and requests besides only compete with it. Products of one and
	// two rows, 650 x 2600: 166 and 198 us without prefetching, 214 and 236 us with it; of four rows it pays (Zen 4,
	// AVX2, weights from memory).
	streamedWork = 3
	// ahead is the part of a fill's cost that is left for a panel, which the processor sees coming.
	ahead = 0.35
	// loopExit is what leaving a loop that runs more than a few times costs: a wrong prediction.
	loopExit = 10
	// regionStart is what starting and ending a parallel region costs all workers together.
	regionStart = 4000
	// inlined is what an operation costs that is done again at each load: a multiplication and an addition are one,
	// and some hide behind the sums.
	inlined = 0.25
	// borderCheck is what a load costs more that a tile at a border may not do, crossingCheck one in a tile whose
	// positions are in several rows.
	borderCheck, crossingCheck = 1, 3
	// apart is by how much of a fill's cost lines that lie apart cost more than those that follow one another, which
	// caches beyond the first fetch ahead.
	apart = 0.6
	// chunkStart is what a chunk costs that begins with nothing in registers.
	chunkStart = 40
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
	work = max(work, x.arithmetic(t, z, multiplyAddLatency)) // sums are waited for while memory is, too
	work += x.feedCycles(t, z, p, n)
	if z.pack {
		work += x.copyCycles(t, n)
	}
	chunks, workers := float64(x.chunks(z)), float64(max(1, t.CPU.Threads))
	work += chunkStart*chunks + x.results.cost(t, p.stream)
	share := math.Ceil(chunks/workers) / chunks
	if chunks == 1 || workers == 1 {
		return work * share
	}
	return work*share + regionStart
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

// wide is by how much a vector is wider than half a line, those for which the costs of moving vectors were found: a
// line of one vector has half the arithmetic to hide behind, and a vector takes as long as the two of a line that had
// it before.
func wide(t *target.Target) float64 {
	return max(1, 2*float64(t.CPU.VectorBytes)/float64(max(1, t.CPU.CacheLineBytes)))
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
		parts := min(1, tv*float64(t.CPU.VectorBytes)/float64(max(1, t.CPU.CacheLineBytes)))
		loads += acc*(1.5-0.5*parts) + spilled(t, acc)
	}
	if x.loadsShared && x.loadsScalar {
		loads += crowded(t, acc, tv, z.ku)
	}
	if spilled := positions - addressRegisters(t); len(x.joint) > 0 && spilled > 0 {
		loads += 2 * spilled // its address comes back from the stack
	}
	busy, operations := acc/2, acc
	if x.dot != nil {
		busy, operations = acc*x.dot.slots, acc*x.dot.operations
	}
	step := max(busy, loads*loadSlot, latency, (operations+loads+2/float64(z.ku))/issueWidth)
	step += hidden*min(busy, loads*loadSlot) + 0.5/float64(z.ku)
	steps := float64(product(x.steps))
	exits := 0.0
	if last := x.innermost(z); last > z.ku {
		exits = steps / float64(last)
	}
	return steps*step + exits*loopExit + (2.5+float64(len(x.ends)))*acc + 12
}

// crowded is how many registers a step stores and loads again because accumulators, a row of vectors and the operand
// that a step broadcasts are more than there are. An instruction could read that operand from memory, but LLVM loads
// what several instructions share; and where a loop has two steps, it keeps no accumulator in its register: a tile of
// 7 x 4 vectors of 32 takes twice as long as with one or four.
func crowded(t *target.Target, acc, vectors float64, unroll int64) float64 {
	over := acc + vectors + 1 - float64(t.CPU.VectorRegisters)
	switch {
	case over <= 0:
		return 0
	case unroll == 2:
		return 2 * acc
	}
	return 2 * over
}

// spilled is how many loads a step has because acc accumulators leave few registers.
func spilled(t *target.Target, acc float64) float64 {
	return 0.8 * max(0, 2*acc-float64(t.CPU.VectorRegisters))
}

// addressRegisters is how many general registers are left for the addresses of a tile's positions, beside those of
// constants and loops.
func addressRegisters(t *target.Target) float64 {
	if t.CPU.Arch == target.X86 {
		return 6
	}
	return 20
}

// cold is the cycles until all packed constants have come from memory.
func (x *tile) cold(t *target.Target, z sizes) float64 {
	if len(x.packs) == 0 {
		return 0
	}
	bytes := float64(product(x.steps)*ceilDiv(x.extent(x.vec), x.lanes)) * float64(t.CPU.VectorBytes)
	lines := bytes / float64(max(1, t.CPU.CacheLineBytes))
	if work := float64(z.th*z.tw) / 2 * float64(t.CPU.CacheLineBytes) / float64(max(1, t.CPU.VectorBytes)); z.pf > 0 && work >= streamedWork {
		return lines * (prefetchedLine + math.Abs(math.Log2(float64(z.pf)/1024))/10)
	}
	return lines * coldLine
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
	line := int64(max(1, t.CPU.CacheLineBytes))
	fills := make([]float64, len(list))
	inner, outer := make([]float64, len(list)), make([]float64, len(list))
	for depth, l := range footprint.Levels(t) {
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
				f *= ahead * wide(t)
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
		fills[k] *= 1 + apart/max(1, float64(list[k].run(run))/float64(line))
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
	cycles := times * elements / lanes * (1.5*wide(t) + 0.5*float64(x.feedOps))
	if p.feed == feedRoot { // to the second cache and back, and a region of its own
		return 2*cycles + regionStart*float64(min(1, t.CPU.Threads-1))
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
