package sketch

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// open returns the knobs.
func (x *winograd) open() []searchspace.Parameter[winogradParameters] {
	type p = winogradParameters
	tiles := x.images * sketch.CeilDiv(x.height, 2) * sketch.CeilDiv(x.width, 2)
	vectors := sketch.CeilDiv(x.oc, x.lanes)
	blocks := append([]int64{0}, sketch.Below(tiles/x.images+1, 2, 4, 7, 8, 14, 16, 28, 49, 56, 112)...)
	return []searchspace.Parameter[p]{
		sketch.Knob("wt", func(p *p) *int64 { return &p.tiles }, sketch.AtMost(tiles, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)...),
		sketch.Knob("wv", func(p *p) *int64 { return &p.vectors }, sketch.AtMost(vectors, 1, 2, 3, 4, 6)...),
		sketch.Knob("wb", func(p *p) *int64 { return &p.block }, blocks...),
		sketch.Knob("wcb", func(p *p) *int64 { return &p.columns }, sketch.AtMost(vectors, 1, 2, 4, 8, 64)...),
		sketch.Unrolling(sketch.Knob("wku", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(x.ic, 1, 2, 4, 8)...)),
		sketch.Knob("wimage", func(p *p) *int64 { return &p.image }, sketch.Inline, sketch.Alone, sketch.InBlock),
		sketch.Knob("wpf", func(p *p) *int64 { return &p.prefetch }, 0, 512, 1024, 2048, 4096),
	}
}

// seeds returns register tiles of the product and block sizes that are known to be good.
func (x *winograd) seeds(by searchspace.Algorithm) (list []searchspace.Candidate[winogradParameters]) {
	tiles := [][2]int64{{6, 2}, {5, 2}, {4, 3}, {4, 2}}
	if x.target.CPU.VectorRegisters >= 32 {
		tiles = [][2]int64{{14, 2}, {8, 2}, {5, 4}, {8, 3}, {4, 6}, {4, 4}}
	}
	for _, t := range tiles {
		for _, p := range []winogradParameters{
			{block: 0, columns: 4, unroll: 2, image: sketch.Inline},
			{block: 14, columns: 64, unroll: 2, image: sketch.Inline},
			{block: 28, columns: 64, unroll: 2, image: sketch.InBlock},
			{block: 112, columns: 64, unroll: 2, image: sketch.Alone},
		} {
			p.tiles, p.vectors, p.prefetch = t[0], t[1], winogradFarAhead
			list = append(list, searchspace.Candidate[winogradParameters]{By: by, Parameters: p})
		}
	}
	return list
}

// maxScratch bounds a schedule's transformed data and its product, in bytes.
const maxScratch = 256 << 20

// Legal implements searchspace.Structure. It also bounds the buffers between the product and its transforms.
func (x *tile) Legal(p winogradParameters) error {
	t, z := x.target, x.sizes(p)
	if err := (RegisterTile{Rows: z.tiles, Vectors: z.vectors, Unroll: z.ku}).Legal(t); err != nil {
		return err
	}
	if bytes := x.scratch(t, z, x.filtering.Products); bytes > maxScratch {
		return fmt.Errorf("space: transformed tiles take %.0f bytes, more than %d", bytes, maxScratch)
	}
	return nil
}

// covered returns the number of tiles per block, or of all tiles without blocks.
func (x *winograd) covered(z winogradSizes) int64 {
	if z.blocked() {
		return z.rows * z.columns
	}
	return x.images * z.ty * z.tx
}

// scratch returns the size of the transformed data and its product in bytes.
func (x *tile) scratch(t *target.Target, z winogradSizes, products int64) float64 {
	bytes := float64(t.CPU.VectorBytes) / float64(x.lanes)
	return bytes * float64(x.covered(z)) * float64(products) * (float64(x.ic)/float64(x.terms()) + float64(x.oc+2*x.line))
}

// Cost implements searchspace.Structure. Like a tile's cost, it covers the three steps (the transform of the data, the
// product and the transform of the product), the data passed between them, and the weights that they read.
func (x *tile) Cost(p winogradParameters) float64 {
	t, f, z := x.target, x.filtering, x.sizes(p)
	workers := float64(microarch.Workers(t))
	covered := float64(x.covered(z))
	blocks := float64(x.images*z.ty*z.tx) / covered
	in, out := float64(sketch.CeilDiv(x.ic, x.lanes)), float64(sketch.CeilDiv(x.oc, x.lanes))
	transforms := covered * (in*dataCycles(f) + out*resultCycles(f))
	if p.image == sketch.Inline {
		transforms += covered * in * 1.2 * float64(f.Products)
	} else {
		transforms += covered * in * 4 * float64(f.Fetched)
	}
	product := x.productCycles(t, z, f.Products)
	cycles := blocks * (transforms + product + x.handedOn(t, z, f.Products))
	regions := 1.0
	if z.blocked() {
		cycles *= microarch.Share(t, blocks)
	} else {
		chunks := float64(f.Products * (sketch.CeilDiv(x.oc, z.vectors*x.lanes) / z.vecTiles))
		cycles = cycles/workers + product*(microarch.Share(t, chunks)-1/workers)
		regions = 3 // the data, the product and the output
	}
	if p.image != sketch.Inline && !(p.image == sketch.InBlock && x.imageInBlocks(z)) {
		regions++
	}
	return cycles + regions*microarch.Region(t) + x.weightCycles(t, z, p.prefetch, blocks*product, blocks, workers)
}

// dataCycles returns the approximate cycles of transforming a tile of data per vector of channels, with spills.
// Fitted, like resultCycles, to F(2x2, 3x3) and F(4x4, 3x3) on AVX2, which take 34 and 125 cycles, and 28 and 95.
func dataCycles(f schedule.Filtering) float64 {
	return 0.67*float64(f.InputOps) + 0.78*float64(f.Products)
}

func resultCycles(f schedule.Filtering) float64 {
	return 0.49*float64(f.OutputOps) + 1.02*float64(f.Products)
}

// productCycles returns the cycles of a block's product.
func (x *tile) productCycles(t *target.Target, z winogradSizes, products int64) float64 {
	vectors := sketch.CeilDiv(x.oc, x.lanes)
	cycles := float64(vectors/z.vectors) * x.tileCycles(t, z, z.vectors)
	if rest := vectors % z.vectors; rest > 0 {
		cycles += x.tileCycles(t, z, rest)
	}
	return float64(products*sketch.CeilDiv(x.covered(z), z.tiles)) * cycles
}

// tileCycles returns the cycles of a register tile's product with the given number of vectors.
func (x *tile) tileCycles(t *target.Target, z winogradSizes, vectors int64) float64 {
	steps := float64(x.ic / x.terms())
	acc, loads := float64(z.tiles*vectors), float64(z.tiles+vectors)
	reloads, latency := microarch.RegisterPressure(t, acc+float64(vectors)+1, acc, float64(z.ku))
	loads, latency = loads+reloads, max(latency, microarch.Latency)
	if x.pairs {
		latency += microarch.PairsLate
	}
	step := microarch.Overlap(acc/2, loads/2, latency) + 0.5/float64(z.ku)
	lines := float64(vectors) * float64(t.CPU.VectorBytes) / float64(microarch.Line(t))
	if first := microarch.Levels(t)[0]; steps*lines > first.Capacity {
		step += lines * first.Cycles / 2 // each tile reads its weights from the second-level cache
	}
	return steps*step + 3*acc + 10
}

// handedOn returns the cycles of writing and reading the transformed data and the product of a block once each.
func (x *tile) handedOn(t *target.Target, z winogradSizes, products int64) float64 {
	bytes := x.scratch(t, z, products)
	lines := 2 * bytes / float64(microarch.Line(t))
	switch {
	case bytes <= 0.7*float64(t.CPU.L2Bytes):
		return lines
	case bytes <= 0.7*float64(max(t.CPU.L3Bytes, t.CPU.L2Bytes)):
		return 3 * lines
	}
	return 10 * lines
}

// The cost of reading weights that remains with prefetching. It decreases with the arithmetic available to hide it.
// Fitted to 2,600 schedules of the convolutions of ResNet-18 on two cores of Zen 5 with AVX-512, in which prefetching
// saves 5 to 30 % of the time. Distances of 2048 and 4096 bytes are equally good for most; 512 saves less for nearly
// all.
const (
	winogradFarAhead = 2048
	hiddenBehind     = 0.5 // fraction of the product that overlaps with line fills
	neverHidden      = 0.2 // fraction of a line's cost
	perOctave        = 0.1 // cycles per line and factor of two above or below the best distance
)

// weightCycles returns the cycles of reading the transformed weights: from memory once, and again for every block
// from the cache that holds them. Without blocks, workers share them. The product is that of all blocks.
func (x *tile) weightCycles(t *target.Target, z winogradSizes, prefetch int64, product, blocks, workers float64) float64 {
	bytes := float64(x.filtering.Products*x.ic/x.terms()*x.oc) * float64(t.CPU.VectorBytes) / float64(x.lanes)
	lines := bytes / float64(microarch.Line(t))
	first := 0.8 * microarch.ColdLine(t) * lines // the products hide the rest
	if prefetch > 0 {
		first = max(neverHidden*microarch.ColdLine(t)*lines, first-hiddenBehind*product)
		first += perOctave * math.Abs(math.Log2(float64(prefetch)/winogradFarAhead)) * lines
	}
	if !z.blocked() {
		return first / min(workers, 2)
	}
	again := 1.5 * lines
	if bytes <= 0.5*float64(t.CPU.L2Bytes) {
		again = 0.4 * lines
	}
	return first + max(0, math.Ceil(blocks/workers)-1)*again
}
