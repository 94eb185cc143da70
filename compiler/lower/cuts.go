package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// checkCuts refuses cut sums that a later primitive has moved, and stages that would be computed in only one of the
// two launches that the tiles of such sums take.
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

// cutAt is the stage computed at a leaf whose sums are cut; nil when there is none.
func (l *lowerer) cutAt(it *schedule.Iter) *schedule.Stage {
	for _, g := range l.order {
		if g.At == it && g.Rounds > 0 {
			return g
		}
	}
	return nil
}
