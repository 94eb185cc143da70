package sketch

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// inlined is the cycles of an operation that is repeated at each load. A multiply-add counts as one, and some
	// hide behind the sums.
	inlined = 0.25
	// borderCheck is the additional cycles of a load that a border tile must check, crossingCheck those of a load in
	// a tile whose positions are in several rows.
	borderCheck, crossingCheck = 1, 3
	// crossingLoads is the additional number of loads of a step per sum if positions are in several rows, which do
	// not share a window's data. Fitted to depthwise convolutions of bytes on Zen 5.
	crossingLoads = 0.25
)

// Cost implements searchspace.Structure. It adds the cycles of the tiles, of waiting for memory, of computing the
// feed of the reduction, and of the imbalance of workers.
func (x *Tile) Cost(p TileParameters) float64 {
	x = x.chosen(p)
	t, z := x.target, x.sizes(p)
	if x.vec < 0 {
		return float64(sketch.Product(x.reduce))
	}
	n := x.nest(z, p)
	list := x.accesses
	if z.pack {
		list = x.packed()
	}
	inside := x.multiplied(p, z)
	work, waiting := inside*x.arithmetic(t, z, 0), n.Waiting(t, slices.Concat(list, x.ends))+x.cold(t, z)
	waiting += x.conflicts(t, z, p, n)
	if x.loadsOwn || x.group > 0 {
		work = max(work, waiting) + microarch.WindowWaits(t)*min(work, waiting)
	} else {
		work += waiting
	}
	work = max(work, inside*x.arithmetic(t, z, microarch.ResultLatency)) // latency overlaps with memory
	work += x.feedCycles(t, z, p, n)
	if z.pack {
		work += x.copyCycles(t, n)
	}
	if x.matrices != nil {
		work += x.turnCycles()
	}
	return microarch.Elapsed(t, work+(microarch.ChunkStart*n.chunks()+x.results.Cost(t, p.Stream)), n.chunks())
}

// arithmetic returns the cycles of all tiles if every load hits the first-level cache and sums have the given latency.
func (x *Tile) arithmetic(t *target.Target, z tileSizes, latency float64) float64 {
	width := x.width(z.tv)
	cycles := float64(x.extent(x.vec)/width) * x.tileCycles(t, float64(z.tv), z, latency)
	if rest := x.extent(x.vec) % width; rest > 0 {
		cut := microarch.Parts(rest, x.lanes)
		if x.matrices != nil {
			cut = sketch.CeilDiv(rest, x.lanes)
		}
		cycles += x.tileCycles(t, float64(cut), z, latency)
	}
	return x.places(z) * cycles
}

// unused returns how many times as many positions tiles compute as the executions need with which kernels are timed,
// relative to the largest one.
func (x *Tile) unused(z tileSizes) float64 {
	if x.timed == nil || x.joined != nil || len(x.joint) > 0 {
		return 1
	}
	computed, needed, last := 0.0, 0.0, 1.0
	for _, extents := range x.timed {
		tiles, whole, all := 1.0, 1.0, 1.0
		for k, e := range extents {
			all *= float64(e)
			tiles *= x.computed(k, e, z)
			whole *= float64(sketch.CeilDiv(e, z.tile(x, k)) * z.tile(x, k))
		}
		computed, needed, last = computed+tiles, needed+all, whole/max(all, 1)
	}
	return computed / max(needed, 1) / last
}

// tile returns the size of a tile along an axis of positions, and 1 along others.
func (z tileSizes) tile(x *Tile, axis int) int64 {
	switch axis {
	case x.vec:
		return 1
	case x.col:
		return z.tw
	case x.row:
		return z.th
	}
	return 1
}

// computed returns how many positions along an axis tiles compute for an execution. Those that end beyond an open
// extent are computed whole, unless they are fitted. Rows of a product may end anywhere: an execution stands for
// others of about its extent, with the mean of the ends that the timed ones can have.
func (x *Tile) computed(axis int, extent int64, z tileSizes) float64 {
	tile := z.tile(x, axis)
	whole := func(n int64) float64 { return float64(sketch.CeilDiv(n, tile) * tile) }
	rest, most := extent%tile, whole(x.timed[len(x.timed)-1][axis])
	switch {
	case !x.isOpenColumn(axis) || rest == 0 && x.fits(axis, z):
		return whole(extent)
	case x.fits(axis, z): // fewer sums than the latency of one spans are no faster
		step, least := schedule.FitStep(tile), float64(tile)*microarch.ResultLatency/(float64(z.tv*tile)/2)
		return float64(extent-rest) + min(float64(tile), max(float64(sketch.CeilDiv(rest, step)*step), least))
	}
	common := tile
	for _, extents := range x.timed {
		common = gcd(common, extents[axis])
	}
	return min(max(float64(tile), float64(extent)+float64(tile-common)/2), most)
}

// places returns how many tiles there are along the axes other than that of the vectors.
func (x *Tile) places(z tileSizes) float64 {
	n := float64(sketch.CeilDiv(x.extent(x.col), z.tw) * sketch.CeilDiv(x.extent(x.row), z.th))
	for k, e := range x.extents {
		if k != x.vec && k != x.col && k != x.row {
			n *= float64(e)
		}
	}
	return n * x.unused(z)
}

// tileCycles returns the cycles of one tile: the steps of its reduction, the loops around them, its start and its end.
func (x *Tile) tileCycles(t *target.Target, tv float64, z tileSizes, latency float64) float64 {
	if x.matrices != nil {
		return x.matrixCycles(tv, z)
	}
	if x.writtenOut(z) && !x.picks {
		return x.windowCycles(t, tv, z)
	}
	positions := float64(z.th * z.tw)
	acc := tv * positions
	loads, scalars, smallest := 0.0, 0.0, 0.0
	if x.loadsShared {
		shared := tv
		if x.dot != nil {
			shared *= x.dot.loads()
		}
		loads += shared
		if z.pf > 0 {
			loads += shared / 2
		}
	}
	if x.loadsScalar {
		scalars += positions
	}
	picked := 0.0
	switch {
	case x.picks:
		crossing := x.crossing(tv)
		picked = x.sharedVectors(crossing, z)
		// All data that the columns of a window share is in registers at once. The excess is spilled and reloaded.
		over := acc + picked*float64(x.sharedFor(z)) + x.pickedFrom(picked, z) + tv + 1 - float64(t.CPU.VectorRegisters)
		loads += x.pickLoads(z)*picked + 2*max(0, over)
		picked *= float64(max(1, x.pickSources()-1)) // an instruction picks from two
		scalars += (tv - crossing) * positions
	case x.loadsOwn:
		// The next step may reuse the data of one step, which stays in a register while some are free. A line of
		// which a tile uses only a part is loaded again for the others.
		parts := min(1, tv*float64(t.CPU.VectorBytes)/float64(microarch.Line(t)))
		loads += x.sharedVectors(tv, z)*(1.5-0.5*parts) + microarch.Spilled(t, acc)
		if x.crosses(z) {
			loads += acc * crossingLoads
		}
	}
	if x.loadsShared && x.loadsScalar {
		var reloads float64
		reloads, smallest = microarch.RegisterPressure(t, acc+tv+1, acc, float64(z.ku))
		loads += reloads
	}
	if spilled := positions - microarch.AddressRegisters(t); x.crosses(z) && spilled > 0 {
		loads += 2 * spilled // its address is reloaded from the stack
	}
	busy, operations := acc/2+microarch.Picking(t, picked), acc+picked
	if x.dot != nil {
		busy, operations = acc*x.dot.slots, acc*x.dot.operations
		if latency > 0 {
			latency += x.dot.late
		}
		if x.turns() { // each step builds its own
			busy, operations = busy+acc*microarch.Turns(t, x.dot.terms), operations+acc*float64(x.dot.terms)
		}
		if x.dot.squares { // for two positions, one is inserted beside the other
			busy, operations = busy+microarch.Inserting(positions/2), operations+positions/2
		}
	}
	casting, casts := x.casts(tv, positions, z)
	busy, operations = busy+casting, operations+casts
	loading := microarch.Loading(t, loads, scalars)
	issue := (operations + loads + scalars + 2/float64(z.ku)) / microarch.Issue
	step := microarch.Overlap(busy, loading, latency, smallest, issue) + 0.5/float64(z.ku)
	steps := float64(sketch.Product(x.steps))
	exits := 0.0
	if last := x.innermost(z); last > z.ku {
		exits = steps / float64(last)
	}
	end := 2.5 + float64(len(x.ends))
	if x.dot != nil && x.dot.squares {
		end += microarch.Inserting(1)
	}
	return steps*step + exits*microarch.LoopExit + end*acc + 12
}

// cold returns the cycles until all packed constants have arrived from memory.
func (x *Tile) cold(t *target.Target, z tileSizes) float64 {
	if len(x.packs) == 0 {
		return 0
	}
	bytes := float64(sketch.Product(x.steps)*sketch.CeilDiv(x.extent(x.vec), x.lanes)) * float64(t.CPU.VectorBytes)
	if x.dot != nil {
		bytes *= x.dot.loads()
	}
	if x.narrow.castsWeights() {
		bytes *= float64(x.accesses[x.narrow.weights].ElementBytes) / float64(array.Float32.Bytes())
	}
	lines := bytes / float64(microarch.Line(t))
	if x.timed == nil {
		return lines * x.coldLine(t, z, x.extents)
	}
	mean := 0.0
	for _, extents := range x.timed {
		mean += x.coldLine(t, z, extents) / float64(len(x.timed))
	}
	return lines * mean
}

// coldLine returns the cycles until a line of packed constants has arrived, for an execution with the given extents.
func (x *Tile) coldLine(t *target.Target, z tileSizes, extents []int64) float64 {
	if z.pf == 0 {
		return microarch.ColdLine(t)
	}
	positions := float64(sketch.Product(extents) / max(1, extents[x.vec]))
	work := float64(t.CPU.CacheLineBytes) / float64(max(1, t.CPU.VectorBytes)) / 2 // on a line, for one position
	if float64(z.th*z.tw)*work < microarch.StreamedWork || positions*work <= microarch.StreamedWork {
		return microarch.ColdLine(t) * microarch.Competing
	}
	return microarch.PrefetchedLine(t) + math.Abs(math.Log2(float64(z.pf)/microarch.FetchedAhead(t)))/10
}

// innermost returns the number of steps of the reduction's innermost loop, including unrolled ones.
func (x *Tile) innermost(z tileSizes) int64 {
	last := x.steps[x.order[len(x.order)-1]]
	if z.kb > 0 {
		last = min(last, z.kb)
	}
	for k := len(x.steps) - 2; k >= 0 && last <= z.ku && z.kb == 0; k-- {
		last *= x.steps[x.order[k]] // the innermost loop is fully unrolled
	}
	return last
}

// nest returns the loops around a tile.
func (x *Tile) nest(z tileSizes, p TileParameters) *Nest {
	n := newNest(x.extents, x.reduce, blocking{
		axes: [3]int{x.vec, x.col, x.row}, tile: [3]int64{x.width(z.tv), z.tw, z.th},
		rowTiles: z.rowTiles, vecTiles: z.vecTiles, inner: z.inner, outer: p.Outer,
	})
	n.Mapped = x.loadsOwn || x.group > 0
	if len(x.joint) > 0 {
		n.Spread = x.spread
	}
	return n
}

// feedCycles returns the cycles of the stages that feed the reduction, at the place that the parameters select.
func (x *Tile) feedCycles(t *target.Target, z tileSizes, p TileParameters, n *Nest) float64 {
	if x.fed == nil {
		return 0
	}
	if p.Feed == sketch.Inline {
		return x.inlineCycles(t, z)
	}
	extents, times := n.Fed(p.Feed)
	if p.Feed == sketch.InTile {
		x.wholeRows(extents, z)
	}
	elements := x.fed.Elements(n.spread(extents))
	lanes := float64(max(1, int64(t.CPU.VectorBytes)/x.fed.ElementBytes))
	if x.turns() {
		lanes = min(lanes, extents[x.vec])
	}
	cycles := times * elements / lanes * (1.5*microarch.Wide(t) + 0.5*float64(x.feedOps))
	if x.turns() {
		cycles += times * microarch.CopyCycles(t, elements*float64(x.fed.ElementBytes))
	}
	if p.Feed == sketch.Alone { // to the second-level cache and back, and a region of its own
		return 2*cycles + microarch.Region(t)
	}
	return cycles + 60*times
}

// wholeRows widens the extents of a tile that may continue in the next row to all rows that it may touch. The part
// that it needs is unknown at compile time, so its feed is computed for all of them.
func (x *Tile) wholeRows(extents []float64, z tileSizes) {
	if x.crosses(z) {
		extents[x.col] = float64(min(x.extent(x.col), ((z.tw-1)/x.rowOf()+2)*x.rowOf()))
	}
}

// crosses reports whether tiles may continue in the next row.
func (x *Tile) crosses(z tileSizes) bool {
	if len(x.joint) == 0 {
		return false
	}
	row := x.rowOf()
	return row%z.tw != 0 && z.tw%row != 0
}

// rowOf returns the number of positions of the joint axes per row.
func (x *Tile) rowOf() int64 { return x.apart[x.col] }

// inlineCycles returns the cycles of a feed that is computed at every load: its arithmetic each time and, for padding,
// the tiles at the borders, which check every load. Tiles that may continue in the next row check every position.
func (x *Tile) inlineCycles(t *target.Target, z tileSizes) float64 {
	if x.writtenOut(z) && !x.picks {
		vectors := float64(sketch.CeilDiv(x.extent(x.vec), x.lanes))
		checks := x.checksCycles(t, float64(z.tv), z) / float64(z.tv)
		return (inlined*float64(x.feedOps)*x.windowLoads(t, 1, z) + checks) * vectors * x.places(z)
	}
	loads := float64(sketch.Product(x.extents)*sketch.Product(x.reduce)) / float64(x.lanes)
	if x.loadsScalar {
		loads = float64(sketch.Product(x.extents)/x.extent(x.vec)*sketch.Product(x.reduce)) * float64(sketch.CeilDiv(x.extent(x.vec), x.width(z.tv)))
	}
	if x.picks {
		loads = x.sharedVectors(1, z) * float64(sketch.CeilDiv(x.extent(x.vec), x.lanes)*sketch.Product(x.reduce)) * x.places(z)
	}
	checks := 0.0
	switch tiles := sketch.CeilDiv(x.extent(x.col), z.tw); {
	case x.crosses(z):
		checks = crossingCheck
	case len(x.joint) > 0:
		checks = borderCheck * x.bordersChecked()
	case !x.columnsWrittenOut(z):
		checks = borderCheck * 2 / float64(tiles*z.tw) // the outermost positions of the outermost tiles
	}
	return loads * (inlined*float64(x.feedOps) + checks + borderCheck*x.rowsChecked(z))
}

// stored returns the reads of the maps after the reduction, and all stores of the nest; nil for a single sum.
func (x *Tile) stored() []cost.Access {
	if len(x.accesses) == 0 {
		return nil
	}
	return append(slices.Clone(x.ends), x.accesses[len(x.accesses)-1])
}

// Product returns the tile of a product of m x k by k x n elements with a packed right operand, repeated several
// times. It supplies the cost of algorithms that are made of products.
func Product(t *target.Target, lanes, m, n, k, times int64) *Tile {
	steps := []int64{times, k}
	return &Tile{
		target: t, lanes: lanes, row: -1, col: 0, vec: 1, extents: []int64{m, n}, reduce: steps, steps: steps, order: []int{0, 1},
		packs:       []tilePackable{{dim: 2, last: 1, rank: 3}},
		loadsShared: true, loadsScalar: true, narrow: wideOperands,
	}
}

// Parts returns parts of the cost of a Product: the cycles of its arithmetic and of its packed operand, which comes
// from memory, and the number of its chunks.
func (x *Tile) Parts(p TileParameters) (arithmetic, cold, chunks float64) {
	z := x.sizes(p)
	return x.arithmetic(x.target, z, microarch.ResultLatency), x.cold(x.target, z), x.nest(z, p).chunks()
}
