package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
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

// Turns returns how many turns of the shared memory banks deliver an operand's element to each thread of a warp.
// place returns a thread's row and column in the block; threads beyond the results have none.
func (p *Product) Turns(b Box, f Fetching, o Operand, place func(thread int64) (row, column int64)) int {
	rows, columns, groups := p.strides(b, f, o)
	var index [warpThreads]int64
	active, bytes := uint32(0), o.Load.DType().Bytes()
	for thread := range index {
		row, column := place(int64(thread))
		if row < p.Extents[p.Rows] && column < p.Extents[p.Columns] {
			index[thread] = row*rows + column*columns + column/max(1, p.Group)*groups
			active |= 1 << thread
		}
	}
	return max(1, cost.Turns(active, &index, bytes, bytes))
}

// strides returns the distances in shared memory, in elements, between the data of neighbouring rows, columns, and
// groups of columns.
func (p *Product) strides(b Box, f Fetching, o Operand) (rows, columns, groups int64) {
	ranges := p.ranges(b)
	stride := int64(1)
	for d := len(o.Load.Index) - 1; d >= 0; d-- {
		for _, t := range expr.Linearize(o.Load.Index[d]).Terms {
			coef := max(t.Coef, -t.Coef)
			if axis, _, ok := divided(t.Atom); ok && axis == p.Axes[p.Columns] {
				groups += coef * stride
			}
			switch t.Atom {
			case p.Axes[p.Rows]:
				rows += coef * stride
			case p.Axes[p.Columns]:
				columns += coef * stride
			}
		}
		extent := b.within(o.Load.Tensor.Shape[d], reach(o.Load.Index[d], ranges))
		if d == len(o.Load.Index)-1 {
			extent += p.gap(o, f, extent)
		}
		stride *= extent
	}
	return rows, columns, groups
}
