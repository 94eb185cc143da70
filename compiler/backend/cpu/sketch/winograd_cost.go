package sketch

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

func (x *winograd) knobs(*target.Target) []space.Knob {
	tiles := x.images * ceilDiv(x.height, smallest) * ceilDiv(x.width, smallest)
	vectors := ceilDiv(x.oc, x.lanes)
	return []space.Knob{
		{Name: "wt", Values: atMost(tiles, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)},
		{Name: "wv", Values: atMost(vectors, 1, 2, 3, 4, 6)},
		{Name: "wb", Values: append([]int64{0}, below(tiles/x.images+1, 2, 4, 7, 8, 14, 16, 28, 49, 56, 112)...)},
		{Name: "wcb", Values: atMost(vectors, 1, 2, 4, 8, 64)},
		{Name: "wku", Values: atMost(x.ic, 1, 2, 4, 8)},
		{Name: "wimage", Values: []int64{feedInline, feedRoot, feedBlock}},
		{Name: "wpf", Values: []int64{0, 512, 1024, 2048, 4096}},
	}
}

// seeds are register tiles of the product and sizes of blocks that are known to be good.
func (x *winograd) seeds(registers int) []string {
	tiles := []string{"wt=6 wv=2", "wt=5 wv=2", "wt=4 wv=3", "wt=4 wv=2"}
	if registers >= 32 {
		tiles = []string{"wt=14 wv=2", "wt=7 wv=4", "wt=8 wv=3", "wt=4 wv=6", "wt=4 wv=4"}
	}
	var seeds []string
	for _, alg := range []int{smallest, largest, tall} {
		for _, t := range tiles {
			for _, rest := range []string{"wb=0 wcb=4 wku=2 wimage=0", "wb=14 wcb=64 wku=2 wimage=0", "wb=28 wcb=64 wku=2 wimage=2", "wb=112 wcb=64 wku=2 wimage=1 wpf=1024"} {
				seeds = append(seeds, fmt.Sprintf("%s=%d %s %s", space.AlgorithmKnob, alg, t, rest))
			}
		}
	}
	return seeds
}

// maxWinogradScratch bounds the transformed data and its product that a schedule keeps, in bytes.
const maxWinogradScratch = 256 << 20

// legal also bounds what lies between the product and its transforms.
func (x *winograd) legal(t *target.Target, set space.Settings) error {
	z := x.sizes(set)
	if err := (registerTile{rows: z.tiles, vectors: z.vectors, unroll: z.ku}).legal(t); err != nil {
		return err
	}
	if bytes := x.scratch(t, z, x.filterings[set[space.AlgorithmKnob]].Products); bytes > maxWinogradScratch {
		return fmt.Errorf("space: transformed tiles take %.0f bytes, more than %d", bytes, maxWinogradScratch)
	}
	return nil
}

// covered is the number of tiles of a block, all without blocks.
func (x *winograd) covered(z winogradSizes) int64 {
	if z.blocked() {
		return z.rows * z.columns
	}
	return x.images * z.ty * z.tx
}

// scratch is the size of the transformed data and its product, in bytes.
func (x *winograd) scratch(t *target.Target, z winogradSizes, products int64) float64 {
	bytes := float64(t.CPU.VectorBytes) / float64(x.lanes)
	return bytes * float64(x.covered(z)) * float64(products) * float64(x.ic+x.oc+2*x.line)
}

// cost estimates cycles as tile.cost does, for the three steps: the transform of the data, the product and the
// transform of the product, and for the bytes that they hand on to each other and the weights that they read.
func (x *winograd) cost(t *target.Target, set space.Settings) float64 {
	f, z := x.filterings[set[space.AlgorithmKnob]], x.sizes(set)
	workers := float64(max(1, t.CPU.Threads))
	covered := float64(x.covered(z))
	blocks := float64(x.images*z.ty*z.tx) / covered
	in, out := float64(ceilDiv(x.ic, x.lanes)), float64(ceilDiv(x.oc, x.lanes))
	transforms := covered * (in*dataCycles(f) + out*resultCycles(f))
	if set["wimage"] == feedInline {
		transforms += covered * in * 1.2 * float64(f.Products)
	} else {
		transforms += covered * in * 4 * float64(f.Fetched)
	}
	product := x.productCycles(t, z, f.Products)
	cycles := blocks * (transforms + product + x.handedOn(t, z, f.Products))
	if z.blocked() {
		cycles *= math.Ceil(blocks/workers) / blocks
	} else {
		chunks := float64(f.Products * (ceilDiv(x.oc, z.vectors*x.lanes) / z.vecTiles))
		cycles = cycles/workers + product*(math.Ceil(chunks/workers)/chunks-1/workers) + (workers-1)*6000
	}
	return cycles + x.weightCycles(t, z, f.Products, blocks, workers)
}

// dataCycles and resultCycles are about what the transforms of a tile take for a vector of channels, with spills:
// fitted to F(2x2, 3x3) and F(4x4, 3x3) on AVX2, which take 34 and 125 cycles, and 28 and 95.
func dataCycles(f schedule.Filtering) float64 {
	return 0.67*float64(f.InputOps) + 0.78*float64(f.Products)
}

func resultCycles(f schedule.Filtering) float64 {
	return 0.49*float64(f.OutputOps) + 1.02*float64(f.Products)
}

// productCycles is the product of a block.
func (x *winograd) productCycles(t *target.Target, z winogradSizes, products int64) float64 {
	acc, loads := float64(z.tiles*z.vectors), float64(z.tiles+z.vectors)
	loads += crowded(t, acc, float64(z.vectors), z.ku)
	step := max(acc/2, loads/2, 4) + 0.15*min(acc/2, loads/2) + 1/float64(z.ku)
	tiles := float64(ceilDiv(x.covered(z), z.tiles)) * float64(ceilDiv(x.oc, x.lanes)) / float64(z.vectors)
	return float64(products) * tiles * (float64(x.ic)*step + 3*acc + 10)
}

// handedOn is the traffic of the transformed data and the product of a block, each written and read once.
func (x *winograd) handedOn(t *target.Target, z winogradSizes, products int64) float64 {
	bytes := x.scratch(t, z, products)
	lines := 2 * bytes / float64(max(1, t.CPU.CacheLineBytes))
	switch {
	case bytes <= 0.7*float64(t.CPU.L2Bytes):
		return lines
	case bytes <= 0.7*float64(max(t.CPU.L3Bytes, t.CPU.L2Bytes)):
		return 3 * lines
	}
	return 10 * lines
}

// weightCycles is the traffic of the transformed weights: from memory once, and again from the cache that holds them
// for every block. Without blocks workers share it.
func (x *winograd) weightCycles(t *target.Target, z winogradSizes, products int64, blocks, workers float64) float64 {
	bytes := float64(products*x.ic*x.oc) * float64(t.CPU.VectorBytes) / float64(x.lanes)
	lines := bytes / float64(max(1, t.CPU.CacheLineBytes))
	first := 0.7 * coldLine * lines // the products hide the rest
	if !z.blocked() {
		return first / min(workers, 2)
	}
	again := 1.5 * lines
	if bytes <= 0.5*float64(t.CPU.L2Bytes) {
		again = 0.4 * lines
	}
	return first + max(0, math.Ceil(blocks/workers)-1)*again
}
