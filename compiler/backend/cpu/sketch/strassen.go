// Strassen is the sketch of products by one step of Strassen's algorithm.

package sketch

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
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
	unit     sketch.Unit
	lanes    int64
	row, col int
	p        schedule.Product
	// rows and columns are the extents of the output; m and n are those of a block, in elements, and k that of its
	// reduction.
	rows, columns, m, k int64
	bytes               int64
	// ends are what the maps behind the product read and store.
	ends []Access
}

// strassenVariant is the sketch for one way to get the sums of the right operand.
type strassenVariant struct {
	*strassen
	sums schedule.Sums
}

// Strassen's algorithm with the sums of the right operand, a constant, compiled, or computed by the kernel.
var (
	StrassenCompiled = space.Algorithm{Name: "strassen", Number: 7}
	Computed         = space.Algorithm{Name: "strassen with computed sums", Number: 70}
)

// products is how many products of blocks the algorithm has.
const products = 7

// strassenParameters are the numbers that the sketch leaves open.
type strassenParameters struct {
	// rows x vectors are the register tile.
	rows, vectors int64
	// rowTiles are the most tiles of a chunk.
	rowTiles int64
	// unroll is how many steps of the reduction are written out.
	unroll int64
	// prefetch is how many bytes ahead sums are fetched.
	prefetch int64
}

// NewStrassen is the schedules of the reduction acc, of whose nest the ends are given; nil when it is no product
// that the algorithm computes.
func NewStrassen(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, ends []Access) space.Family {
	p, ok := s.Product(acc.ID)
	if !ok {
		return nil
	}
	bytes := acc.Tensor.DType.Bytes()
	x := &strassen{
		target: t, unit: u,
		lanes: max(1, int64(t.CPU.VectorBytes)/bytes), row: p.Row, col: p.Column, p: p, bytes: bytes,
		rows: acc.Tensor.Shape[p.Row], columns: acc.Tensor.Shape[p.Column],
		m: sketch.CeilDiv(acc.Tensor.Shape[p.Row], 2), k: sketch.CeilDiv(p.Inner, 2),
		ends: ends,
	}
	return &space.Sketch[strassenParameters]{
		Open: x.open(),
		Variants: []space.Variant[strassenParameters]{
			{By: StrassenCompiled, Structure: &strassenVariant{x, schedule.Compiled}},
			{By: Computed, Structure: &strassenVariant{x, schedule.Computed}},
		},
		Good: x.seeds(),
	}
}

// n is how many columns a block has, in whole vectors.
func (x *strassen) n() int64 { return sketch.CeilDiv(x.columns, 2*x.lanes) * x.lanes }

// strassenSizes are the numbers that follow from the parameters.
type strassenSizes struct {
	// rows x vectors is the register tile, of each of the seven products.
	rows, vectors, ku int64
	// rowTiles are the tiles of one chunk.
	rowTiles, pf int64
	// sums says when the sums of the right operand are computed.
	sums schedule.Sums
}

func (x *strassenVariant) sizes(p strassenParameters) strassenSizes {
	z := strassenSizes{
		rows: min(max(1, p.rows), x.m), vectors: min(max(1, p.vectors), x.n()/x.lanes),
		ku: max(1, p.unroll), pf: p.prefetch, sums: x.sums,
	}
	z.rowTiles = sketch.DivisorAtMost(sketch.CeilDiv(x.m, z.rows), max(1, p.rowTiles))
	return z
}
