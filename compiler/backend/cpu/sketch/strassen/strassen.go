package strassen

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/reuse"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// strassen is the sketch of a product of matrices by Strassen's algorithm. The sums of the left operand are computed
// first. Then, for each pair of vectors of columns and each few pairs of rows, the seven products are computed into a
// buffer that stays in the first cache, and put together to four tiles of outputs at once: nothing else is written.
// The sums of the right operand are compiled, or are computed for each strip of columns into a buffer that stays in
// the second cache while all rows of a block use it.
type strassen struct {
	target   *target.Target
	unit     nest.Unit
	lanes    int64
	row, col int
	p        schedule.Product
	// rows and columns are the extents of the output; m and n are those of a block, in elements, and k that of its
	// reduction.
	rows, columns, m, k int64
	bytes               int64
	// ends are what the maps behind the product read and store.
	ends []reuse.Access
}

// variant is the sketch for one way to get the sums of the right operand.
type variant struct {
	*strassen
	sums schedule.Sums
}

// Strassen's algorithm with the sums of the right operand, a constant, compiled, or computed by the kernel.
var (
	Compiled = space.Algorithm{Name: "strassen", Number: 7}
	Computed = space.Algorithm{Name: "strassen with computed sums", Number: 70}
)

// products is how many products of blocks the algorithm has.
const products = 7

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// rows x vectors are the register tile.
	rows, vectors int64
	// rowTiles are the most tiles of a chunk.
	rowTiles int64
	// unroll is how many steps of the reduction are written out.
	unroll int64
	// prefetch is how many bytes ahead sums are fetched.
	prefetch int64
}

// New is the schedules of the reduction acc, of whose nest the ends are given; nil when it is no product that the
// algorithm computes.
func New(s *schedule.Schedule, acc *schedule.Stage, u nest.Unit, t *target.Target, ends []reuse.Access) space.Family {
	p, ok := s.Product(acc.ID)
	if !ok {
		return nil
	}
	bytes := acc.Tensor.DType.Bytes()
	x := &strassen{
		target: t, unit: u,
		lanes: max(1, int64(t.CPU.VectorBytes)/bytes), row: p.Row, col: p.Column, p: p, bytes: bytes,
		rows: acc.Tensor.Shape[p.Row], columns: acc.Tensor.Shape[p.Column],
		m: nest.CeilDiv(acc.Tensor.Shape[p.Row], 2), k: nest.CeilDiv(p.Inner, 2),
		ends: ends,
	}
	return &space.Sketch[parameters]{
		Open: x.open(),
		Variants: []space.Variant[parameters]{
			{By: Compiled, Structure: &variant{x, schedule.Compiled}},
			{By: Computed, Structure: &variant{x, schedule.Computed}},
		},
		Good: x.seeds(),
	}
}

// n is how many columns a block has, in whole vectors.
func (x *strassen) n() int64 { return nest.CeilDiv(x.columns, 2*x.lanes) * x.lanes }

// sizes are the numbers that follow from the parameters.
type sizes struct {
	// rows x vectors is the register tile, of each of the seven products.
	rows, vectors, ku int64
	// rowTiles are the tiles of one chunk.
	rowTiles, pf int64
	// sums says when the sums of the right operand are computed.
	sums schedule.Sums
}

func (x *variant) sizes(p parameters) sizes {
	z := sizes{
		rows: min(max(1, p.rows), x.m), vectors: min(max(1, p.vectors), x.n()/x.lanes),
		ku: max(1, p.unroll), pf: p.prefetch, sums: x.sums,
	}
	z.rowTiles = nest.DivisorAtMost(nest.CeilDiv(x.m, z.rows), max(1, p.rowTiles))
	return z
}
