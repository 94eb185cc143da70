package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// tileSizes are the numbers derived from the parameters.
type tileSizes struct {
	tv, tw, th int64
	// rowTiles and vecTiles are the numbers of tiles per block.
	rowTiles, vecTiles int64
	ku, kb, pf         int64
	// inner is the order of tiles within a block: 0 with the vectors inside, 1 with the positions inside. pack copies
	// panels.
	inner int64
	pack  bool
	// castsData is set if 16-bit data is cast at every read.
	castsData bool
	// rolled keeps the loops over the positions of a tile instead of unrolling them.
	rolled bool
}

func (x *Tile) sizes(p TileParameters) tileSizes {
	z := tileSizes{tv: max(1, p.Vectors), tw: max(1, p.Columns), th: max(1, p.Rows), ku: max(1, p.Unroll), kb: p.Reduce, pf: p.Prefetch, inner: p.Inner, rolled: x.matrices != nil}
	z.castsData = x.narrow.data >= 0 && p.Feed == sketch.Inline
	if len(x.vectors) == 1 { // not a knob here
		z.tv = x.vectors[0]
	}
	if z.pack = len(x.panels) > 0 && (x.mustPack || p.Pack == 1); z.pack {
		z.inner = 1 // a panel serves all positions of its block
	}
	blocked := sketch.CeilDiv(x.extent(x.row), z.th)
	if x.row < 0 {
		blocked = sketch.CeilDiv(x.extent(x.col), z.tw)
	}
	z.rowTiles = sketch.DivisorAtMost(blocked, max(1, p.RowTiles))
	z.vecTiles = sketch.DivisorAtMost(sketch.CeilDiv(x.extent(x.vec), x.width(z.tv)), max(1, p.VectorTiles))
	return z
}

// Legal implements searchspace.Structure. It also refuses duplicates of other points, and tiles that cross groups.
func (x *Tile) Legal(p TileParameters) error {
	if x = x.chosen(p); x.matrices != nil {
		return x.legalMatrices(p)
	}
	if x.joined != nil && p.Columns > x.extent(x.col) || len(x.joint) > 0 && p.Rows > 1 {
		return fmt.Errorf("space: tile %dx%d duplicates another one", p.Rows, p.Columns)
	}
	if len(x.joint) > 0 && x.fed != nil && p.Feed == sketch.InBlock {
		return fmt.Errorf("space: the producer cannot be computed for a non-rectangular block")
	}
	z := x.sizes(p)
	r := RegisterTile{Rows: z.th * z.tw, Vectors: z.tv, Unroll: z.ku, Whole: z.ku == sketch.Product(x.steps)}
	if x.dot != nil {
		r.More = x.dot.registers
		if x.dot.squares {
			r.More += z.tv // a vector's channels fill two registers
		}
	}
	if err := r.Legal(x.target); err != nil {
		return err
	}
	if x.dot != nil && x.dot.squares && z.th*z.tw%2 != 0 {
		return fmt.Errorf("space: %dx%d positions cannot be multiplied in pairs", z.th, z.tw)
	}
	if !x.fitsGroups(z.tv * x.lanes) {
		return fmt.Errorf("space: tiles of %d vectors cut through groups of %d channels", z.tv, x.group)
	}
	// A line of which tiles store parts past the caches would be written to memory in parts.
	if line := microarch.Line(x.target); p.Stream == 1 && (z.tv*int64(x.target.CPU.VectorBytes)%line != 0 || x.extent(x.vec)%x.width(z.tv) != 0) {
		return fmt.Errorf("space: a tile of %d vectors stores parts of lines past the caches", z.tv)
	}
	return nil
}

// width returns how many channels a tile with the given number of vectors has.
func (x *Tile) width(vectors int64) int64 {
	if x.ragged {
		return x.group
	}
	return vectors * x.lanes
}

// streamedSteps is the maximum number of terms per sum for non-temporal stores. Stores hide behind the arithmetic of
// longer sums.
const streamedSteps = 128

// stream records where the nest's results may use non-temporal stores: the sums of a few products with contiguous
// tiles.
func (x *Tile) stream(s *schedule.Schedule, out *schedule.Stage) {
	if x.lanes < 2 || x.loadsOwn || !x.loadsShared || sketch.Product(x.reduce) > streamedSteps {
		return
	}
	x.results = NewStreaming(s, out)
	if x.joined != nil {
		x.joined.results = x.results
	}
}
