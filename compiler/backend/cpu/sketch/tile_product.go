package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Feed is the part of the reduction's products whose data is no padding, 0 where that is not known, and how many
// operations there are on each element of what feeds it.
func (x *Tile) Feed() (inside float64, operations int) { return x.inside, x.feedOps }

// Ends are what the maps behind the reduction read, and all that the nest stores; nil for a single sum.
func (x *Tile) Ends() []Access {
	if len(x.accesses) == 0 {
		return nil
	}
	return append(slices.Clone(x.ends), x.accesses[len(x.accesses)-1])
}

// Product is the tile of a product of m x k by k x n elements whose right operand is packed, several times one after
// the other: what algorithms that are made of products cost.
func Product(t *target.Target, lanes, m, n, k, times int64) *Tile {
	steps := []int64{times, k}
	return &Tile{
		target: t, lanes: lanes, row: -1, col: 0, vec: 1, extents: []int64{m, n}, reduce: steps, steps: steps, order: []int{0, 1},
		packs:       []tilePackable{{dim: 2, last: 1, rank: 3}},
		loadsShared: true, loadsScalar: true, narrow: wideOperands,
	}
}

// Parts are parts of the cost of a Product, in cycles: of its arithmetic and of its packed operand, which comes from
// memory, and the number of its chunks.
func (x *Tile) Parts(p TileParameters) (arithmetic, cold float64, chunks int64) {
	z := x.sizes(p)
	return x.arithmetic(x.target, z, machine.ResultLatency), x.cold(x.target, z), x.chunks(z)
}
