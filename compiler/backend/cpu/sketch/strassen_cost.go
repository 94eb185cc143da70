package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// open returns the knobs.
func (x *strassen) open() []searchspace.Parameter[strassenParameters] {
	type p = strassenParameters
	vectors := x.n() / x.lanes
	return []searchspace.Parameter[p]{
		sketch.Knob("st", func(p *p) *int64 { return &p.rows }, sketch.AtMost(x.m, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)...),
		sketch.Knob("sv", func(p *p) *int64 { return &p.vectors }, sketch.AtMost(vectors, 1, 2, 3, 4, 6)...),
		sketch.Knob("sb", func(p *p) *int64 { return &p.rowTiles }, sketch.AtMost(x.m, 1, 2, 4, 8, 16, 1024)...),
		sketch.Unrolling(sketch.Knob("sku", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(x.k, 1, 2, 4, 8)...)),
		sketch.Knob("spf", func(p *p) *int64 { return &p.prefetch }, 0, 512, 1024, 2048, 4096),
	}
}

// seeds returns register tiles that are known to be good.
func (x *strassen) seeds() (list []searchspace.Candidate[strassenParameters]) {
	tiles := [][2]int64{{4, 3}, {5, 2}, {6, 2}, {4, 2}}
	if x.target.CPU.VectorRegisters >= 32 {
		tiles = [][2]int64{{14, 2}, {7, 4}, {8, 3}, {6, 4}, {4, 6}, {4, 4}}
	}
	for _, t := range tiles {
		p := strassenParameters{rows: t[0], vectors: t[1], rowTiles: 1024, unroll: 2, prefetch: 1024}
		for _, by := range []searchspace.Algorithm{StrassenCompiled, Computed} {
			list = append(list, searchspace.Candidate[strassenParameters]{By: by, Parameters: p})
		}
	}
	return list
}

// Legal implements searchspace.Structure.
func (x *strassenVariant) Legal(p strassenParameters) error {
	z := x.sizes(p)
	return RegisterTile{Rows: z.rows, Vectors: z.vectors, Unroll: z.ku}.Legal(x.target)
}

// The overhead of Strassen's algorithm in cycles: per vector of an output block, storing its seven products and
// combining them into four outputs; per vector of a left operand block, its seven sums, which go to the second-level
// cache.
const (
	outputCycles = 20
	sumCycles    = 15
	// rightCycles is the cost of the seven sums of a vector of the right operand, which stay in the second-level
	// cache.
	rightCycles = 20
	// unforeseen is the fraction of a fill's cost for a strip of sums that is not prefetched. The strip exceeds the
	// first-level cache and is read again from seven places for every tile. A product of 128 x 512 by 512 x 1536 then
	// took 2.9 ms instead of 2.1.
	unforeseen = 1.6
	// colder is the additional cost of a line of sums from memory relative to a line of weights, if many workers
	// share the memory: the algorithm reads 7/4 of the lines for 7/8 of the multiplications.
	colder = 0.5
	// again is the cost of reading a line of the sums from the last-level cache for another block of rows.
	again = 1.5
	// sumsNear and sumsFar are the cost of a line of the left operand's sums that goes through the last-level cache
	// or through memory. 50176 x 64 by 64 x 64 took 9.7 ms, against 5.7 directly.
	sumsNear, sumsFar = 3, 30
	// A tile with fewer accumulators than plenty loses time for each missing one, since its latency is not hidden. On
	// Zen 4, tiles of 4 x 3 and 6 x 2 vectors took 7.2 and 7.3 ms, one of 5 x 2 7.6 ms, and one of 4 x 2 8.1 ms.
	plenty      = 12
	lostForEach = 0.025
	// handedFar is the additional fraction of time if the sums go through a distant last-level cache. On Emerald
	// Rapids vit-b-16 is 1.14 times as fast without the algorithm on one thread; ResNet-50, BERT and GPT-2 do not
	// change.
	handedFar = 0.1
	// nearestAhead is the best prefetch distance in bytes; each factor of two above costs lostAhead.
	nearestAhead = 512
	lostAhead    = 0.03
)

// Cost implements searchspace.Structure. Like a tile's cost, it covers a tile whose reduction also runs over the seven
// products.
func (x *strassenVariant) Cost(p strassenParameters) float64 {
	t, z := x.target, x.sizes(p)
	arithmetic, cold, chunks := x.tiles.Parts(TileParameters{
		Vectors: z.vectors, Columns: z.rows, RowTiles: z.rowTiles, Unroll: z.ku, Prefetch: z.pf,
	})
	workers := float64(microarch.Workers(t))
	outputs := float64(x.m*x.n()) / float64(x.lanes) * outputCycles * microarch.Wide(t)
	few := 1 + lostForEach*float64(max(0, plenty-z.rows*z.vectors))
	work := few*arithmetic + x.right(t, z, cold, workers) + x.traffic(t, z) + x.endNest(z).Waiting(t, x.ends) + outputs + microarch.ChunkStart*chunks
	sums := float64(x.m*sketch.CeilDiv(x.k, x.lanes)) * sumCycles * microarch.Wide(t)
	sums += x.handedOn(t)
	all := work*microarch.Share(t, chunks) + sums/workers + 2*microarch.Region(t)
	return all * (1 + handedFar*(microarch.Distance(t)-1))
}

// handedOn returns the cycles of writing and reading the sums of the left operand through memory.
func (x *strassen) handedOn(t *target.Target) float64 {
	bytes := float64(products*x.m*x.k) * float64(x.bytes)
	lines := bytes / float64(microarch.Line(t))
	switch {
	case bytes <= 0.7*float64(t.CPU.L2Bytes):
		return 0
	case bytes <= 0.5*microarch.LastCache(t):
		return sumsNear * lines
	}
	return sumsFar * lines
}

// right returns the cycles until the sums of the right operand are available. cold is the time in which precomputed
// sums arrive from memory, if they are read like weights.
func (x *strassen) right(t *target.Target, z strassenSizes, cold, workers float64) float64 {
	if z.sums == schedule.Compiled {
		return cold * (1 + colder*(1-1/workers))
	}
	blocks := sketch.CeilDiv(sketch.CeilDiv(x.m, z.rows), z.rowTiles)
	return cold*4/products + float64(blocks*x.k*x.n()/x.lanes)*rightCycles*microarch.Wide(t)
}

// traffic returns the cycles of filling both operands into the first-level cache as often as they are read: the left
// one for every strip of columns, the right one, which is prefetched, for every tile of rows.
func (x *strassen) traffic(t *target.Target, z strassenSizes) float64 {
	line, bytes := float64(microarch.Line(t)), float64(x.bytes)
	fill := func(size float64) float64 { // from the second-level cache, or from the next
		if size <= 0.7*float64(t.CPU.L2Bytes) {
			return 1
		}
		return 2
	}
	width := z.vectors * x.lanes
	left := float64(products*min(x.m, z.rows*z.rowTiles)*x.k) * bytes
	strip := float64(products*x.k*width) * bytes
	hidden := microarch.Ahead * microarch.Wide(t)
	switch {
	case z.pf == 0:
		hidden = unforeseen
	case z.sums == schedule.Computed:
		hidden += lostAhead * math.Abs(math.Log2(float64(z.pf)/nearestAhead))
	}
	strips, tiles := float64(sketch.CeilDiv(x.n(), width)), float64(sketch.CeilDiv(x.m, z.rows))
	blocks := tiles / float64(z.rowTiles)
	return strips * (blocks*left*fill(left) + tiles*strip*fill(strip)*hidden + (blocks-1)*strip*again) / line
}

// endNest returns the loops around the tiles of outputs.
func (x *strassen) endNest(z strassenSizes) *Nest {
	n := &Nest{Tile: make([]float64, 3), Limits: make([]float64, 3)}
	n.Limits[x.row], n.Limits[x.col], n.Limits[2] = float64(x.rows), float64(x.columns), float64(x.p.Inner)
	rows, columns := 2*z.rows, 2*z.vectors*x.lanes
	n.Tile[x.row], n.Tile[x.col] = float64(min(rows, x.rows)), float64(min(columns, x.columns))
	n.Loops = []Loop{{Axis: x.row, Times: z.rowTiles}, {Axis: x.col, Times: sketch.CeilDiv(x.columns, columns)}, {Axis: x.row, Times: sketch.CeilDiv(x.rows, rows) / z.rowTiles}}
	return n
}
