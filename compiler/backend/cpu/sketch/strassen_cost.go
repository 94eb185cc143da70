package sketch

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

func (x *strassen) knobs(*target.Target) []space.Knob {
	vectors := x.n() / x.lanes
	return []space.Knob{
		{Name: "st", Values: atMost(x.m, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)},
		{Name: "sv", Values: atMost(vectors, 1, 2, 3, 4, 6)},
		{Name: "sb", Values: atMost(x.m, 1, 2, 4, 8, 16, 1024)},
		{Name: "sku", Values: atMost(x.k, 1, 2, 4, 8)},
		{Name: "spf", Values: []int64{0, 512, 1024, 2048, 4096}},
	}
}

// algorithms is the value of the knob that chooses this sketch.
func (x *strassen) algorithms() []int64 { return []int64{seven, sevenNow} }

// seeds are register tiles that are known to be good.
func (x *strassen) seeds(registers int) []string {
	tiles := []string{"st=4 sv=3", "st=5 sv=2", "st=6 sv=2", "st=4 sv=2"}
	if registers >= 32 {
		tiles = []string{"st=14 sv=2", "st=7 sv=4", "st=8 sv=3", "st=6 sv=4", "st=4 sv=6", "st=4 sv=4"}
	}
	var seeds []string
	for _, t := range tiles {
		for _, alg := range x.algorithms() {
			seeds = append(seeds, fmt.Sprintf("%s=%d %s sb=1024 sku=2 spf=1024", space.AlgorithmKnob, alg, t))
		}
	}
	return seeds
}

func (x *strassen) legal(t *target.Target, set space.Settings) error {
	z := x.sizes(set)
	return registerTile{rows: z.rows, vectors: z.vectors, unroll: z.ku}.legal(t)
}

// What Strassen's algorithm adds, in cycles: for each vector of a block of outputs, storing its seven products and
// putting them together to four outputs; and for each vector of a block of the left operand, its seven sums, which go
// out to the second cache.
const (
	strassenOutputCycles = 20
	strassenSumCycles    = 15
	// strassenRightCycles is computing the seven sums of a vector of the right operand, which stay in the second
	// cache.
	strassenRightCycles = 20
	// unforeseen is the part of a fill's cost that is left for a strip of sums that nothing prefetches: larger than
	// the first cache, it is read again for every tile from seven places. A product of 128 x 512 by 512 x 1536 then
	// took 2.9 ms, not 2.1.
	unforeseen = 1.6
	// colder is how much more a line of the sums costs when it first comes from memory than one of weights, where many
	// workers share the memory: of 7/4 as many for 7/8 of the multiplications, it falls behind.
	colder = 0.5
	// again is what a line of the sums costs each time that it is read for another block of rows, from the last cache.
	again = 1.5
	// sumsNear and sumsFar are what a line of the left operand's sums costs that goes through the last cache, or
	// through memory. 50176 x 64 by 64 x 64 took 9.7 ms, 5.7 directly.
	sumsNear, sumsFar = 3, 30
	// A tile of fewer accumulators than plenty loses some time for each that is missing: what it waits for is not
	// hidden behind others. On Zen 4, tiles of 4 x 3 and 6 x 2 vectors took 7.2 and 7.3 ms, one of 5 x 2 7.6 ms, one
	// of 4 x 2 8.1 ms.
	plenty      = 12
	lostForEach = 0.025
	// nearestAhead bytes of prefetching are best; each factor of two more costs lostAhead.
	nearestAhead = 512
	lostAhead    = 0.03
)

// cost estimates cycles as tile.cost does: those of the seven products are of a tile whose reduction runs over the
// products, too.
func (x *strassen) cost(t *target.Target, set space.Settings) float64 {
	z := x.sizes(set)
	p := x.products(t)
	tile := p.sizes(space.Settings{"tv": z.vectors, "tw": z.rows, "hb": z.rowTiles, "ku": z.ku, "pf": z.pf})
	chunks, workers := float64(p.chunks(tile)), float64(max(1, t.CPU.Threads))
	outputs := float64(x.m*x.n()) / float64(x.lanes) * strassenOutputCycles * wide(t)
	few := 1 + lostForEach*float64(max(0, plenty-z.rows*z.vectors))
	work := few*p.arithmetic(t, tile, multiplyAddLatency) + x.right(t, z, p.cold(t, tile), workers) + x.traffic(t, z) + x.endNest(z).waiting(t, x.ends) + outputs + chunkStart*chunks
	sums := float64(x.m*ceilDiv(x.k, x.lanes)) * strassenSumCycles * wide(t)
	sums += x.handedOn(t)
	return work*math.Ceil(chunks/workers)/chunks + sums/workers + 2*regionStart*min(1, workers-1)
}

// handedOn is the cycles that the sums of the left operand wait for memory when they are written and read again.
func (x *strassen) handedOn(t *target.Target) float64 {
	bytes := float64(seven*x.m*x.k) * float64(x.bytes)
	lines := bytes / float64(max(1, t.CPU.CacheLineBytes))
	switch {
	case bytes <= 0.7*float64(t.CPU.L2Bytes):
		return 0
	case bytes <= 0.5*lastCache(t):
		return sumsNear * lines
	}
	return sumsFar * lines
}

// right is the cycles until the sums of the right operand are there; cold is what those that are compiled take to come
// from memory, if they are read as weights are.
func (x *strassen) right(t *target.Target, z strassenSizes, cold, workers float64) float64 {
	if z.sums == schedule.Compiled {
		return cold * (1 + colder*(1-1/workers))
	}
	blocks := ceilDiv(ceilDiv(x.m, z.rows), z.rowTiles)
	return cold*4/seven + float64(blocks*x.k*x.n()/x.lanes)*strassenRightCycles*wide(t)
}

// traffic is the cycles until the lines of both operands are in the first cache, as often as they are read: those of
// the left one for every strip of columns, those of the right one, which are fetched ahead, for every tile of rows.
func (x *strassen) traffic(t *target.Target, z strassenSizes) float64 {
	line, bytes := float64(max(1, t.CPU.CacheLineBytes)), float64(x.bytes)
	fill := func(size float64) float64 { // from the second cache, or from the next
		if size <= 0.7*float64(t.CPU.L2Bytes) {
			return 1
		}
		return 2
	}
	width := z.vectors * x.lanes
	left := float64(seven*min(x.m, z.rows*z.rowTiles)*x.k) * bytes
	strip := float64(seven*x.k*width) * bytes
	hidden := ahead * wide(t)
	switch {
	case z.pf == 0:
		hidden = unforeseen
	case z.sums == schedule.Computed:
		hidden += lostAhead * math.Abs(math.Log2(float64(z.pf)/nearestAhead))
	}
	strips, tiles := float64(ceilDiv(x.n(), width)), float64(ceilDiv(x.m, z.rows))
	blocks := tiles / float64(z.rowTiles)
	return strips * (blocks*left*fill(left) + tiles*strip*fill(strip)*hidden + (blocks-1)*strip*again) / line
}

// endNest is the loops around the tiles of outputs.
func (x *strassen) endNest(z strassenSizes) nest {
	n := nest{tile: make([]int64, 3), limits: make([]int64, 3)}
	n.limits[x.row], n.limits[x.col], n.limits[2] = x.rows, x.columns, x.p.Inner
	rows, columns := 2*z.rows, 2*z.vectors*x.lanes
	n.tile[x.row], n.tile[x.col] = min(rows, x.rows), min(columns, x.columns)
	n.loops = []trip{{x.row, z.rowTiles}, {x.col, ceilDiv(x.columns, columns)}, {x.row, ceilDiv(x.rows, rows) / z.rowTiles}}
	return n
}

// products are the seven products as one reduction of m x n elements.
func (x *strassen) products(t *target.Target) *tile {
	steps := []int64{seven, x.k}
	return &tile{
		lanes: x.lanes, row: -1, col: 0, vec: 1, extents: []int64{x.m, x.n()}, reduce: steps, steps: steps,
		packs:       []packable{{constant: x.p.Constant, dim: 2, last: 1, rank: 3}},
		loadsShared: true, loadsScalar: true,
	}
}
