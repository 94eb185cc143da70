package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
)

// Traffic returns the cycles in which a multiprocessor receives what a block fetches per step: from the L2 cache,
// into which operands are read once if they fit. Otherwise they are read again for the concurrent blocks that do not
// share them.
func (p *Product) Traffic(w TileScheduler, b Box, l Launch) float64 {
	all := 0.0
	for _, o := range p.Operands {
		all += o.bytes()
	}
	if all > float64(p.GPU.L2Bytes) {
		all = max(all, p.refetched(w, b, l))
	}
	steps, _ := p.Steps(b)
	return cost.TrafficCycles(float64(p.FetchedBytes(b)), all/float64(p.Blocks(b)*steps))
}

func (o Operand) bytes() float64 {
	return float64(array.Elements(o.Load.Tensor.Shape) * o.Load.DType().Bytes())
}

// refetched returns the bytes read from global memory if nothing stays in the cache for blocks of a later wave.
func (p *Product) refetched(w TileScheduler, b Box, l Launch) (bytes float64) {
	r, c := p.tiles(b)
	rows, columns := float64(r), float64(c)
	together := min(l.Concurrent*float64(p.GPU.Multiprocessors), rows*columns)
	// Concurrent tiles are in one or more bands of this many rows.
	band := min(float64(max(1, w.RasterWidth)), rows)
	wide := min(math.Ceil(together/band), columns)
	high := min(math.Ceil(together/(band*columns))*band, rows)
	rounds := max(1, float64(p.Blocks(b))/together)
	for _, o := range p.Operands {
		share := 1.0
		if p.Reads(o, p.Rows) {
			share *= high / rows
		}
		if p.Reads(o, p.Columns) {
			share *= wide / columns
		}
		bytes += rounds * share * o.bytes() * rows * columns / float64(p.Blocks(b))
	}
	return bytes
}
