package schedule

import "fmt"

// maxSkew bounds the gap between rows, in elements.
const maxSkew = 1 << 10

// Skew leaves a gap of some elements behind each row (the last dimension) of the buffer that holds a stage between its
// producer and its consumers. Rows a power of two apart fall into the same few sets of a cache; a gap of one line
// spreads them over all.
func (s *Schedule) Skew(stageID int, elements int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("skew: %w", err)
	case g.IsOutput:
		return fmt.Errorf("skew: stage %d is an output, whose layout is given", stageID)
	case g.Skew != 0:
		return fmt.Errorf("skew: stage %d is already skewed", stageID)
	case len(g.Axes) == 0 || elements < 1 || elements > maxSkew:
		return fmt.Errorf("skew: a gap of %d elements behind rows of stage %d is not between 1 and %d", elements, stageID, maxSkew)
	}
	g.Skew = elements
	s.record("skew", stageID, int(elements))
	return nil
}
