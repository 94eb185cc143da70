package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// streamK describes how blocks share tiles whose sums take the given number of steps. In the first rounds each block
// has a tile per round. The steps of the remaining tiles form a sequence, of which each block has an equal part;
// the first blocks may have one step more.
type streamK struct {
	tiles, steps, blocks int64
	// wholeRounds is the number of rounds without divided sums, wholeTiles the number of their tiles.
	wholeRounds, wholeTiles int64
	// perBlock is the number of steps of the remaining tiles per block, and longer the number of blocks with one more.
	perBlock, longer int64
	// maxPieces is the largest number of pieces of the remaining tiles in a block, and pieces the number over all
	// tiles.
	maxPieces, pieces int64
	// parts is the average number of blocks that share one of these tiles, among tiles with at least two.
	parts float64
}

func newStreamK(acc *schedule.Stage, tiles, steps int64, by schedule.Distribution) (*streamK, error) {
	blocks := by.PersistentBlocks
	s := &streamK{tiles: tiles, steps: steps, blocks: blocks}
	if tiles%blocks == 0 {
		return nil, fmt.Errorf("lower: stage %d has %d tiles, whole rounds of %d blocks: Stream-K has no effect", acc.ID, tiles, blocks)
	}
	s.wholeRounds = max(0, tiles/blocks-(by.StreamKRounds-1))
	s.wholeTiles = s.wholeRounds * blocks
	all := (tiles - s.wholeTiles) * steps
	s.perBlock, s.longer = all/blocks, all%blocks
	switch {
	case steps < 2:
		return nil, fmt.Errorf("lower: sums of stage %d have one step, which Stream-K cannot split", acc.ID)
	case tiles > maxCount/steps-1: // kernels count the steps of all tiles
		return nil, fmt.Errorf("lower: the Stream-K sums of stage %d have %d tiles of %d steps, more than blocks can count",
			acc.ID, tiles, steps)
	case s.perBlock == 0:
		return nil, fmt.Errorf("lower: stage %d has %d steps for %d blocks, fewer than one each", acc.ID, all, blocks)
	}
	s.count()
	return s, nil
}

// begin returns the first step of a block, and the end of the previous one.
func (s *streamK) begin(block int64) int64 { return block*s.perBlock + min(block, s.longer) }

// count counts pieces in time independent of the number of tiles. A tile is divided where a block starts inside it.
func (s *streamK) count() {
	cut, last := int64(0), int64(-1)
	for b := range s.blocks {
		begin, end := s.begin(b), s.begin(b+1)
		n := (end-1)/s.steps - begin/s.steps + 1
		s.maxPieces, s.pieces = max(s.maxPieces, n), s.pieces+n
		if tile := begin / s.steps; begin%s.steps > 0 && tile != last {
			cut, last = cut+1, tile
		}
	}
	whole := s.tiles - s.wholeTiles - cut // each of them is one piece
	s.parts = float64(s.pieces-whole) / float64(max(1, cut))
}

// maxSteps returns the largest number of steps of a block, in tiles.
func (s *streamK) maxSteps() float64 {
	largest := s.wholeRounds*s.steps + s.perBlock
	if s.longer > 0 {
		largest++
	}
	return float64(largest) / float64(s.steps)
}

// beginOf returns begin as an expression.
func (s *streamK) beginOf(block expr.Expr) expr.Expr {
	first := expr.MulE(block, expr.I(s.perBlock))
	if s.longer > 0 {
		first = expr.AddE(first, expr.MinE(block, expr.I(s.longer)))
	}
	return expr.Simplify(first)
}

// blockOfStep returns the block of a step.
func (s *streamK) blockOfStep(step expr.Expr) expr.Expr {
	long := s.longer * (s.perBlock + 1)
	rest := expr.AddE(expr.I(s.longer), expr.Bin(expr.FloorDiv, expr.SubE(step, expr.I(long)), expr.I(s.perBlock)))
	if s.longer == 0 {
		return expr.Simplify(rest)
	}
	return expr.Simplify(expr.Sel(expr.Bin(expr.Lt, step, expr.I(long)), expr.Bin(expr.FloorDiv, step, expr.I(s.perBlock+1)), rest))
}

// piece defines what a block computes in a round: a tile, and its steps in the range lo <= step < hi.
func (s *streamK) piece(block, round *expr.Var) (tile, lo, hi *expr.Var, lets ir.Block) {
	all := (s.tiles - s.wholeTiles) * s.steps
	from, to := &expr.Var{Name: "from", Extent: all}, &expr.Var{Name: "to", Extent: all + 1}
	tile = &expr.Var{Name: "piece", Extent: s.tiles}
	lo, hi = &expr.Var{Name: "lo", Extent: s.steps}, &expr.Var{Name: "hi", Extent: s.steps + 1}
	before := expr.MulE(expr.SubE(tile, expr.I(s.wholeTiles)), expr.I(s.steps))
	at := expr.AddE(expr.AddE(expr.I(s.wholeTiles), expr.Bin(expr.FloorDiv, from, expr.I(s.steps))), expr.SubE(round, expr.I(s.wholeRounds)))
	first := expr.MaxE(expr.SubE(from, before), expr.I(0))
	end := expr.MinE(expr.SubE(to, before), expr.I(s.steps))
	if s.wholeRounds > 0 {
		whole := expr.Bin(expr.Lt, round, expr.I(s.wholeRounds))
		at = expr.Sel(whole, expr.AddE(block, expr.MulE(round, expr.I(s.blocks))), at)
		first, end = expr.Sel(whole, expr.I(0), first), expr.Sel(whole, expr.I(s.steps), end)
	}
	return tile, lo, hi, ir.Block{
		&ir.Let{Var: from, Value: s.beginOf(block)}, &ir.Let{Var: to, Value: s.beginOf(expr.AddE(block, expr.I(1)))},
		&ir.Let{Var: tile, Value: expr.Simplify(at)},
		&ir.Let{Var: lo, Value: expr.Simplify(first)}, &ir.Let{Var: hi, Value: expr.Simplify(end)},
	}
}

// walk returns the rounds of a block, one for each of its pieces.
func (s *streamK) walk(block expr.Expr) *ir.Range {
	last := expr.Bin(expr.FloorDiv, expr.SubE(s.beginOf(expr.AddE(block, expr.I(1))), expr.I(1)), expr.I(s.steps))
	first := expr.Bin(expr.FloorDiv, s.beginOf(block), expr.I(s.steps))
	end := expr.AddE(expr.SubE(last, first), expr.I(s.wholeRounds+1))
	mean := float64(s.wholeRounds) + float64(s.pieces)/float64(s.blocks)
	return &ir.Range{First: expr.I(0), End: expr.Simplify(end), Every: 1, Mean: mean}
}
