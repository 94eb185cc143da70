package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Distribution is how the iterations of a leaf on blocks, the tiles, are distributed over the blocks of a launch.
type Distribution struct {
	// PersistentBlocks is the number of blocks that compute all tiles; 0 gives each tile a block.
	PersistentBlocks int64
	// RasterWidth is the rasterisation width, in iterations of the outer of the two fused iterators; 0 for none.
	RasterWidth int64
	// StreamKRounds is the number of rounds of persistent blocks in which the sums of the only stage that is computed
	// in the tiles are divided for equal shares; 0 for none.
	StreamKRounds int64
}

// Limits on a trace, far above the sizes of real GPUs.
const (
	maxPersistentBlocks = 1 << 18
	maxRasterWidth      = 1 << 16
	maxStreamKRounds    = 64
)

// Persist makes blocks persistent: the given number of blocks computes all tiles of a stage. Block b computes tile
// b and every blocks-th tile after it. If a GPU can hold all blocks at once, it starts each of them just once. At
// most one block per tile starts.
func (s *Schedule) Persist(stageID int, blocks int64) error {
	return s.change("persist", stageID, []int{int(blocks)}, func(g *Stage) error {
		tiles := g.leafOf(Block)
		switch {
		case tiles == nil:
			return fmt.Errorf("stage %d has no iterator on blocks", stageID)
		case tiles.PersistentBlocks > 0:
			return fmt.Errorf("stage %d has its blocks already", stageID)
		case blocks < 1 || blocks > maxPersistentBlocks:
			return fmt.Errorf("%d blocks of stage %d are not between 1 and %d", blocks, stageID, maxPersistentBlocks)
		}
		tiles.PersistentBlocks = blocks
		return nil
	})
}

// Raster sets the rasterisation of a stage's tiles: blocks traverse bands of width rows, column by column within a
// band. The leaf bound to blocks must be fused from the iterators over rows and columns. Concurrent blocks then
// share operands along both dimensions, instead of one.
func (s *Schedule) Raster(stageID int, width int64) error {
	return s.change("raster", stageID, []int{int(width)}, func(g *Stage) error {
		tiles := g.leafOf(Block)
		switch {
		case tiles == nil || tiles.Fused == nil:
			return fmt.Errorf("stage %d has no iterator on blocks that was fused of two", stageID)
		case tiles.RasterWidth > 0:
			return fmt.Errorf("stage %d has its bands already", stageID)
		case width < 2 || width > maxRasterWidth:
			return fmt.Errorf("bands of %d of stage %d are not between 2 and %d wide", width, stageID, maxRasterWidth)
		}
		tiles.RasterWidth = width
		return nil
	})
}

// StreamK divides the sums of a stage evenly among blocks (Osama et al., "Stream-K: Work-centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023). The stage must be the only one computed in
// the tiles of another one with persistent blocks. In the last rounds, including the incomplete one, the steps of all
// sums form one sequence, of which each block takes an equal part: a whole sum, or the end of one and the start of the
// next. If several blocks share a sum, they store partial sums, and a second launch, the fix-up, adds them in block
// order. A step is an iteration of the outermost reduction loop. Every combiner is associative and commutative, so
// this is always legal; floating-point sums are rounded in another order.
func (s *Schedule) StreamK(stageID int, rounds int64) error {
	return s.change("streamk", stageID, []int{int(rounds)}, func(g *Stage) error {
		switch {
		case rounds < 1 || rounds > maxStreamKRounds:
			return fmt.Errorf("%d rounds of stage %d are not between 1 and %d", rounds, stageID, maxStreamKRounds)
		case g.Combiner == expr.None || g.Decay != nil || g.Kept != nil:
			return fmt.Errorf("stage %d is not a reduction whose parts can be combined", stageID)
		case g.Consumer == nil || g.At.Kind != Block || g.At.PersistentBlocks == 0:
			return fmt.Errorf("stage %d is not computed in tiles over which blocks walk", stageID)
		case g.At.StreamKRounds > 0:
			return fmt.Errorf("stage %d is cut already", stageID)
		case g.IsOutput:
			return fmt.Errorf("stage %d is an output, of which parts would be stored", stageID)
		}
		if k := slices.IndexFunc(s.Stages, func(p *Stage) bool { return p != g && p.At == g.At }); k >= 0 {
			return fmt.Errorf("stage %d is computed alongside the Stream-K sums of stage %d", k, stageID)
		}
		g.At.StreamKRounds = rounds
		return nil
	})
}
