package schedule

import "fmt"

// UnitLoop adds a loop of one iteration around a stage's nest, as TVM's add_unit_loop does, and returns its number.
// A stage without axes has no other loop to bind to blocks or threads, or to compute other stages in.
func (s *Schedule) UnitLoop(stageID int) (iter int, err error) {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return 0, fmt.Errorf("unit-loop: %w", err)
	case g.TMA:
		return 0, fmt.Errorf("unit-loop: stage %d is copied as boxes, and has no loops", stageID)
	case len(g.Iters) >= maxIters:
		return 0, fmt.Errorf("unit-loop: stage %d has too many iterators", stageID)
	}
	it := g.newIter(false)
	g.Leaves = append([]*Iter{it}, g.Leaves...)
	s.record("unit-loop", stageID)
	return it.ID, nil
}
