package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Level is a level of a GPU's thread hierarchy that a leaf can be bound to.
type Level uint8

// The levels: a grid consists of blocks, a block of threads.
const (
	BlockLevel Level = iota
	ThreadLevel
)

var boundKinds = map[Level]Kind{BlockLevel: Block, ThreadLevel: Thread}

// Bind maps a leaf's iterations to the blocks of a grid or the threads of a block, one each. A stage has at most
// one leaf of each level, blocks outside threads; fuse leaves first. Iterations must write disjoint elements, so a
// stage with shifted tiles, which overlap, cannot be bound.
func (s *Schedule) Bind(stageID, iterID int, level Level) error {
	kind, known := boundKinds[level]
	return s.changeLeaf("bind", stageID, []int{iterID, int(level)}, func(g *Stage, it *Iter) error {
		switch {
		case !known:
			return fmt.Errorf("%d is not a level", level)
		case it.Kind != Serial:
			return fmt.Errorf("iterator %d of stage %d is already annotated", iterID, stageID)
		case it.Reduce:
			return fmt.Errorf("iterator %d of stage %d is a reduction", iterID, stageID)
		case kind == Block && g.Consumer != nil:
			return fmt.Errorf("stage %d is computed inside another, whose blocks it shares", stageID)
		case g.has(kind):
			return fmt.Errorf("stage %d already has an iterator of that level", stageID)
		case slices.ContainsFunc(g.Iters, func(it *Iter) bool { return it.Split != nil && (it.Split.Tail == Shift || it.Split.Tail == Fit) }):
			return fmt.Errorf("stage %d has a shifted tile or a fitted one, which threads cannot compute", stageID)
		}
		it.Kind = kind
		return nil
	})
}

// leafOf returns the first leaf of a kind, or nil.
func (g *Stage) leafOf(kind Kind) *Iter {
	for _, it := range g.Leaves {
		if it.Kind == kind {
			return it
		}
	}
	return nil
}

// has reports whether the stage has a leaf of the given kind.
func (g *Stage) has(kind Kind) bool { return g.leafOf(kind) != nil }

// Bound reports whether a stage has a leaf bound to blocks or threads.
func (g *Stage) Bound() bool { return g.has(Block) || g.has(Thread) }

// UnitLoop adds a loop of one iteration around a stage's nest, as TVM's add_unit_loop does, and returns its number.
// A stage without axes has no other loop to bind to blocks or threads, or to compute other stages in.
func (s *Schedule) UnitLoop(stageID int) (iter int, err error) {
	err = s.change("unit-loop", stageID, nil, func(g *Stage) error {
		switch {
		case g.TMA:
			return g.noBoxes()
		case len(g.Iters) >= maxIters:
			return fmt.Errorf("stage %d has too many iterators", stageID)
		}
		it := g.newIter(false)
		g.Leaves, iter = append([]*Iter{it}, g.Leaves...), it.ID
		return nil
	})
	return iter, err
}

// Shuffle combines the terms of a leaf, which are results of neighbouring threads of a warp, by register exchange.
// The stage must combine the partial results of another one, in which each thread computes the result of its
// number. Other loops fall back to shared memory.
func (s *Schedule) Shuffle(stageID, iterID int) error {
	return s.annotate("shuffle", stageID, iterID, Lanewise, func(g *Stage, it *Iter) error {
		partial, isLoad := g.Body.(*expr.Load)
		switch {
		case !it.Reduce || it.Axis < 0 || len(g.Reduce) != 1:
			return fmt.Errorf("iterator %d of stage %d is not all of its reduction", iterID, stageID)
		case !isLoad || s.Producer(partial.Tensor) == nil:
			return fmt.Errorf("stage %d does not combine the results of another stage", stageID)
		}
		return nil
	})
}
