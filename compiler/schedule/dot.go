package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Dot computes a leaf's iterations of a sum of products in one step for all lanes of a vector: instructions multiply
// the two or four neighbouring elements that a lane has of either operand and add the products to the lane's sum. The
// leaf belongs directly outside of the vectorized one. Where the operands do not lie as instructions want them, or the
// machine has none for their types, the step is computed by plain arithmetic: that is slow, and never wrong.
func (s *Schedule) Dot(stageID, iterID int) error {
	g, it, err := s.leaf(stageID, iterID)
	switch {
	case err != nil:
		return fmt.Errorf("dot: %w", err)
	case !it.Reduce || g.Combiner != expr.Sum:
		return fmt.Errorf("dot: iterator %d of stage %d is not of a sum", iterID, stageID)
	case s.attachedAt(it):
		return fmt.Errorf("dot: a stage is computed at iterator %d of stage %d", iterID, stageID)
	}
	return s.annotate("dot", stageID, iterID, Dotted)
}
