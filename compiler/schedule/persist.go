package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

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
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("persist: %w", err)
	case g.blocks() == nil:
		return fmt.Errorf("persist: stage %d has no iterator on blocks", stageID)
	case g.PersistentBlocks > 0:
		return fmt.Errorf("persist: stage %d has its blocks already", stageID)
	case blocks < 1 || blocks > maxPersistentBlocks:
		return fmt.Errorf("persist: %d blocks of stage %d are not between 1 and %d", blocks, stageID, maxPersistentBlocks)
	}
	g.PersistentBlocks = blocks
	s.record("persist", stageID, int(blocks))
	return nil
}

// Raster sets the rasterisation of a stage's tiles: blocks traverse bands of width rows, column by column within a
// band. The leaf bound to blocks must be fused from the iterators over rows and columns. Concurrent blocks then
// share operands along both dimensions, instead of one.
func (s *Schedule) Raster(stageID int, width int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("raster: %w", err)
	case g.blocks() == nil || g.blocks().Fused == nil:
		return fmt.Errorf("raster: stage %d has no iterator on blocks that was fused of two", stageID)
	case g.RasterWidth > 0:
		return fmt.Errorf("raster: stage %d has its bands already", stageID)
	case width < 2 || width > maxRasterWidth:
		return fmt.Errorf("raster: bands of %d of stage %d are not between 2 and %d wide", width, stageID, maxRasterWidth)
	}
	g.RasterWidth = width
	s.record("raster", stageID, int(width))
	return nil
}

// StreamK divides the sums of a stage evenly among blocks (Osama et al., "Stream-K: Work-centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023). The stage must be computed in the tiles
// of another one with persistent blocks. In the last rounds, including the incomplete one, the steps of all sums
// form one sequence, of which each block takes an equal part: a whole sum, or the end of one and the start of the
// next. If several blocks share a sum, they store partial sums, and a second launch, the fix-up, adds them in block
// order. A step is an iteration of the outermost reduction loop. Every combiner is associative and commutative, so
// this is always legal; floating-point sums are rounded in another order.
func (s *Schedule) StreamK(stageID int, rounds int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("streamk: %w", err)
	case g.StreamKRounds > 0:
		return fmt.Errorf("streamk: stage %d is cut already", stageID)
	case rounds < 1 || rounds > maxStreamKRounds:
		return fmt.Errorf("streamk: %d rounds of stage %d are not between 1 and %d", rounds, stageID, maxStreamKRounds)
	}
	if err := g.CheckStreamK(); err != nil {
		return fmt.Errorf("streamk: %w", err)
	}
	g.StreamKRounds = rounds
	s.record("streamk", stageID, int(rounds))
	return nil
}

// CheckStreamK returns nil if the sums of a stage can be divided, or an error that gives the reason. Later primitives
// may change the result.
func (g *Stage) CheckStreamK() error {
	switch {
	case g.Combiner == expr.None || g.Decay != nil || g.Kept != nil:
		return fmt.Errorf("stage %d is not a reduction whose parts can be combined", g.ID)
	case g.Consumer == nil || g.At.Kind != Block || g.Consumer.PersistentBlocks == 0:
		return fmt.Errorf("stage %d is not computed in tiles over which blocks walk", g.ID)
	case g.IsOutput:
		return fmt.Errorf("stage %d is an output, of which parts would be stored", g.ID)
	}
	return nil
}

// blocks returns the leaf bound to blocks, or nil.
func (g *Stage) blocks() *Iter {
	for _, it := range g.Leaves {
		if it.Kind == Block {
			return it
		}
	}
	return nil
}
