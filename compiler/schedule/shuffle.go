package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Shuffle combines the terms of a leaf, which are results of neighbouring threads of a warp, by register exchange.
// The stage must combine the partial results of another one, in which each thread computes the result of its
// number. Other loops fall back to shared memory.
func (s *Schedule) Shuffle(stageID, iterID int) error {
	g, it, err := s.leaf(stageID, iterID)
	if err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	partial, isLoad := g.Body.(*expr.Load)
	switch {
	case !it.Reduce || it.Axis < 0 || len(g.Reduce) != 1:
		return fmt.Errorf("shuffle: iterator %d of stage %d is not all of its reduction", iterID, stageID)
	case !isLoad || s.Producer(partial.Tensor) == nil:
		return fmt.Errorf("shuffle: stage %d does not combine the results of another stage", stageID)
	case s.attachedAt(it):
		return fmt.Errorf("shuffle: a stage is computed at iterator %d of stage %d", iterID, stageID)
	}
	return s.annotate("shuffle", stageID, iterID, Lanewise)
}
