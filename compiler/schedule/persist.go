package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Limits on what a trace can ask for, far above what cards have.
const (
	maxWalkers = 1 << 18
	maxBand    = 1 << 16
	maxRounds  = 64
)

// Persist makes blocks persistent: so many of them compute all tiles of a stage. Block b has tile b, then each one
// that is a multiple of so many behind it. A card that holds all blocks at once begins each of them just once. Of more
// blocks than tiles, as many as there are tiles begin.
func (s *Schedule) Persist(stageID int, blocks int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("persist: %w", err)
	case g.blocks() == nil:
		return fmt.Errorf("persist: stage %d has no iterator on blocks", stageID)
	case g.Walkers > 0:
		return fmt.Errorf("persist: stage %d has its blocks already", stageID)
	case blocks < 1 || blocks > maxWalkers:
		return fmt.Errorf("persist: %d blocks of stage %d are not between 1 and %d", blocks, stageID, maxWalkers)
	}
	g.Walkers = blocks
	s.record("persist", stageID, int(blocks))
	return nil
}

// Raster rasterises the tiles of a stage: blocks take them in bands of so many rows, column by column within a band.
// The leaf on blocks is fused of the two iterators over rows and columns. Blocks that run at the same time then have
// tiles that share operands along both, not along one alone.
func (s *Schedule) Raster(stageID int, width int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("raster: %w", err)
	case g.blocks() == nil || g.blocks().Fused == nil:
		return fmt.Errorf("raster: stage %d has no iterator on blocks that was fused of two", stageID)
	case g.Band > 0:
		return fmt.Errorf("raster: stage %d has its bands already", stageID)
	case width < 2 || width > maxBand:
		return fmt.Errorf("raster: bands of %d of stage %d are not between 2 and %d wide", width, stageID, maxBand)
	}
	g.Band = width
	s.record("raster", stageID, int(width))
	return nil
}

// StreamK divides the sums of a stage evenly among blocks (Osama et al., "Stream-K: Work-centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023). The stage is computed in the tiles of
// another one, whose blocks are persistent. In the last so many rounds, the incomplete one among them, the steps of
// all sums follow one another, and each block has as many of them: all of a sum, or the end of one and the beginning
// of the next. Where two or more blocks share a sum, its parts go to memory, and a second launch, the fix-up, adds
// them up in the order of the blocks. A step is an iteration of the outermost loop of the reduction. Every combiner is
// associative and commutative, so this is always legal; sums of floating point numbers are rounded in another order.
func (s *Schedule) StreamK(stageID int, rounds int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("streamk: %w", err)
	case g.Rounds > 0:
		return fmt.Errorf("streamk: stage %d is cut already", stageID)
	case rounds < 1 || rounds > maxRounds:
		return fmt.Errorf("streamk: %d rounds of stage %d are not between 1 and %d", rounds, stageID, maxRounds)
	}
	if err := g.Cuttable(); err != nil {
		return fmt.Errorf("streamk: %w", err)
	}
	g.Rounds = rounds
	s.record("streamk", stageID, int(rounds))
	return nil
}

// Cuttable says why the sums of a stage cannot be cut; nil where they can. Primitives that follow may change that.
func (g *Stage) Cuttable() error {
	switch {
	case g.Combiner == expr.None || g.Decay != nil || g.Kept != nil:
		return fmt.Errorf("stage %d is no reduction whose parts can be combined", g.ID)
	case g.Consumer == nil || g.At.Kind != Block || g.Consumer.Walkers == 0:
		return fmt.Errorf("stage %d is not computed in tiles over which blocks walk", g.ID)
	case g.IsOutput:
		return fmt.Errorf("stage %d is an output, of which parts would be stored", g.ID)
	}
	return nil
}

// blocks is the leaf that runs on blocks; nil when there is none.
func (g *Stage) blocks() *Iter {
	for _, it := range g.Leaves {
		if it.Kind == Block {
			return it
		}
	}
	return nil
}
