package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// checkCuts rejects divided sums that a later primitive has moved, and stages that only one of the two launches for
// the tiles of such sums would compute.
func (l *lowerer) checkCuts() error {
	for _, g := range l.order {
		if g.Rounds == 0 {
			continue
		}
		if err := g.Cuttable(); err != nil {
			return fmt.Errorf("lower: sums are cut, but %w", err)
		}
		for _, p := range l.order {
			if p != g && p.At == g.At {
				return fmt.Errorf("lower: stage %d is computed beside sums that are cut, those of stage %d", p.ID, g.ID)
			}
		}
	}
	return nil
}

// cutAt returns the stage with divided sums computed at a leaf, or nil.
func (l *lowerer) cutAt(it *schedule.Iter) *schedule.Stage {
	for _, g := range l.order {
		if g.At == it && g.Rounds > 0 {
			return g
		}
	}
	return nil
}
