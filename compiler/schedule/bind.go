package schedule

import (
	"fmt"
	"slices"
)

// Level is a level of a GPU's threads that a leaf can be bound to.
type Level uint8

// The levels: a grid is made of blocks, a block of threads.
const (
	BlockLevel Level = iota
	ThreadLevel
)

var boundKinds = map[Level]Kind{BlockLevel: Block, ThreadLevel: Thread}

// Bind runs a leaf's iterations on the blocks of a grid or on the threads of a block, all at once: their number is the
// leaf's extent. A stage has at most one leaf of each, that of blocks outside that of threads; leaves are fused first.
// Iterations must write different elements, so a stage with shifted tiles, which overlap, is not bound.
func (s *Schedule) Bind(stageID, iterID int, level Level) error {
	g, it, err := s.leaf(stageID, iterID)
	kind, known := boundKinds[level]
	switch {
	case err != nil:
		return fmt.Errorf("bind: %w", err)
	case !known:
		return fmt.Errorf("bind: %d is not a level", level)
	case it.Kind != Serial:
		return fmt.Errorf("bind: iterator %d of stage %d is already annotated", iterID, stageID)
	case it.Reduce:
		return fmt.Errorf("bind: iterator %d of stage %d is a reduction", iterID, stageID)
	case kind == Block && g.Consumer != nil:
		return fmt.Errorf("bind: stage %d is computed inside another, whose blocks it shares", stageID)
	case g.has(kind):
		return fmt.Errorf("bind: stage %d already has an iterator of that level", stageID)
	case g.overlaps():
		return fmt.Errorf("bind: stage %d has a shifted tile, which another one overlaps", stageID)
	}
	it.Kind = kind
	s.record("bind", stageID, iterID, int(level))
	return nil
}

// has reports whether a leaf has a kind.
func (g *Stage) has(kind Kind) bool {
	return slices.ContainsFunc(g.Leaves, func(it *Iter) bool { return it.Kind == kind })
}

// overlaps reports whether a split of the stage moves its last tile back over the one before.
func (g *Stage) overlaps() bool {
	return slices.ContainsFunc(g.Iters, func(it *Iter) bool { return it.Split != nil && it.Split.Tail == Shift })
}

// Bound reports whether a stage has a leaf on blocks or threads.
func (g *Stage) Bound() bool { return g.has(Block) || g.has(Thread) }
