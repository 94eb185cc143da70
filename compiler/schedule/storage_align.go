package schedule

import "fmt"

// maxAlignGap limits the gap between rows, in elements.
const maxAlignGap = 1 << 10

// StorageAlign inserts a gap of the given number of elements after each row (the last dimension) of a stage's
// buffer. Rows at power-of-two distances map to the same few cache sets; a gap of one line spreads them. The
// primitive follows TVM's; traces call it skew.
func (s *Schedule) StorageAlign(stageID int, elements int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("skew: %w", err)
	case g.IsOutput:
		return fmt.Errorf("skew: stage %d is an output, whose layout is given", stageID)
	case g.StorageAlign != 0:
		return fmt.Errorf("skew: stage %d is already skewed", stageID)
	case g.Swizzled:
		return fmt.Errorf("skew: stage %d is swizzled", stageID)
	case len(g.Axes) == 0 || elements < 1 || elements > maxAlignGap:
		return fmt.Errorf("skew: a gap of %d elements behind rows of stage %d is not between 1 and %d", elements, stageID, maxAlignGap)
	}
	g.StorageAlign = elements
	s.record("skew", stageID, int(elements))
	return nil
}
