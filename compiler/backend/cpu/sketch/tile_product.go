package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Feed returns the fraction of the reduction's products whose data is not padding, 0 if unknown, and the number of
// operations on each element of its feed.
func (x *Tile) Feed() (inside float64, operations int) { return x.inside, x.feedOps }

// Ends returns the reads of the maps after the reduction, and all stores of the nest; nil for a single sum.
func (x *Tile) Ends() []Access {
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
func (x *Tile) Parts(p TileParameters) (arithmetic, cold float64, chunks int64) {
	z := x.sizes(p)
	return x.arithmetic(x.target, z, microarch.ResultLatency), x.cold(x.target, z), x.chunks(z)
}
