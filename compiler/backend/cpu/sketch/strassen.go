package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// strassen is the sketch of a matrix product by one step of Strassen's algorithm. The sums of the left operand are
// computed first. Then, for each pair of column vectors and a few pairs of rows, the seven products go into a buffer
// that stays in the first-level cache, and are combined into four output tiles at once. Nothing else is written. The
// sums of the right operand are precomputed at compile time, or computed per strip of columns into a buffer that
// stays in the second-level cache while all rows of a block use it.
type strassen struct {
	target   *target.Target
	unit     sketch.Unit
	lanes    int64
	row, col int
	p        schedule.Product
	// rows and columns are the extents of the output. m and n are those of a block in elements, and k is the extent
	// of its reduction.
	rows, columns, m, k int64
	bytes               int64
	// tiles is the tile of the seven products, ends the reads and stores of the maps after them.
	tiles *Tile
	ends  []cost.Access
}

// strassenVariant is the sketch for one way to obtain the sums of the right operand.
type strassenVariant struct {
	*strassen
	sums schedule.Sums
}

// Strassen's algorithm with the sums of a constant right operand precomputed, or computed by the kernel.
var (
	StrassenCompiled = searchspace.Algorithm{Name: "strassen", Number: 7}
	Computed         = searchspace.Algorithm{Name: "strassen with computed sums", Number: 70}
)

// products is the number of block products of the algorithm.
const products = 7

// strassenParameters are the sketch's parameters.
type strassenParameters struct {
	// rows x vectors is the register tile.
	rows, vectors int64
	// rowTiles is the maximum number of tiles per chunk.
	rowTiles int64
	// unroll is the number of unrolled steps of the reduction.
	unroll int64
	// prefetch is the prefetch distance of sums in bytes.
	prefetch int64
}

// NewStrassen returns the schedules of the reduction acc, with the ends of its nest, or nil if the algorithm does not
// apply.
func NewStrassen(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, ends []cost.Access) searchspace.Family {
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
	x.tiles = Product(t, x.lanes, x.m, x.n(), x.k, products)
	return &searchspace.Sketch[strassenParameters]{
		Open: x.open(),
		Variants: []searchspace.Variant[strassenParameters]{
			{By: StrassenCompiled, Structure: &strassenVariant{x, schedule.Compiled}},
			{By: Computed, Structure: &strassenVariant{x, schedule.Computed}},
		},
		Good: x.seeds(),
	}
}

// n returns the number of columns per block, in whole vectors.
func (x *strassen) n() int64 { return sketch.CeilDiv(x.columns, 2*x.lanes) * x.lanes }

// strassenSizes are the numbers derived from the parameters.
type strassenSizes struct {
	// rows x vectors is the register tile of each of the seven products.
	rows, vectors, ku int64
	// rowTiles is the number of tiles per chunk.
	rowTiles, pf int64
	// sums selects when the sums of the right operand are computed.
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
