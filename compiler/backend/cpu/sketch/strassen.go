package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// strassen is the sketch of a product of matrices by Strassen's algorithm. The sums of the left operand are computed
// first. Then, for each pair of vectors of columns and each few pairs of rows, the seven products are computed into a
// buffer that stays in the first cache, and put together to four tiles of outputs at once: nothing else is written.
// The sums of the right operand are compiled, or are computed for each strip of columns into a buffer that stays in
// the second cache while all rows of a block use it.
type strassen struct {
	lanes    int64
	row, col int
	p        schedule.Product
	// rows and columns are the extents of the output; m and n are those of a block, in elements, and k that of its
	// reduction.
	rows, columns, m, k int64
	bytes               int64
	// ends are what the maps behind the product read and store.
	ends []access
}

// newStrassen is nil when the reduction acc, whose direct sum is given, is no product that the algorithm computes.
func newStrassen(s *schedule.Schedule, acc *schedule.Stage, t *target.Target, direct *tile) *strassen {
	p, ok := s.Product(acc.ID)
	if !ok {
		return nil
	}
	bytes := acc.Tensor.DType.Bytes()
	return &strassen{
		lanes: max(1, int64(t.CPU.VectorBytes)/bytes), row: p.Row, col: p.Column, p: p, bytes: bytes,
		rows: acc.Tensor.Shape[p.Row], columns: acc.Tensor.Shape[p.Column],
		m: ceilDiv(acc.Tensor.Shape[p.Row], 2), k: ceilDiv(p.Inner, 2),
		ends: append(slices.Clone(direct.ends), direct.accesses[len(direct.accesses)-1]),
	}
}

// n is how many columns a block has, in whole vectors.
func (x *strassen) n() int64 { return ceilDiv(x.columns, 2*x.lanes) * x.lanes }

// strassenSizes are the numbers that follow from the settings.
type strassenSizes struct {
	// rows x vectors is the register tile, of each of the seven products.
	rows, vectors, ku int64
	// rowTiles are the tiles of one chunk.
	rowTiles, pf int64
	// sums says when the sums of the right operand are computed.
	sums schedule.Sums
}

func (x *strassen) sizes(set space.Settings) strassenSizes {
	z := strassenSizes{
		rows: min(max(1, set["st"]), x.m), vectors: min(max(1, set["sv"]), x.n()/x.lanes),
		ku: max(1, set["sku"]), pf: set["spf"], sums: schedule.Compiled,
	}
	if set[space.AlgorithmKnob] == sevenNow {
		z.sums = schedule.Computed
	}
	z.rowTiles = divisorAtMost(ceilDiv(x.m, z.rows), max(1, set["sb"]))
	return z
}
