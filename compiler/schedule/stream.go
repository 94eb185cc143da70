package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Stream stores an output past the caches, where whole vectors lie at multiples of their size. An ordinary store first
// fetches the line that it changes a part of, and leaves it in a cache in place of another: of results that no cache
// holds until they are read, both are for nothing.
func (s *Schedule) Stream(stageID int) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("stream: %w", err)
	case !g.IsOutput:
		return fmt.Errorf("stream: stage %d is not an output", stageID)
	case g.Streamed:
		return fmt.Errorf("stream: stage %d is already streamed", stageID)
	case g.Combiner != expr.None:
		return fmt.Errorf("stream: stage %d is a reduction, which reads what it stored", stageID)
	case g.Tensor.Strides != nil:
		return fmt.Errorf("stream: stage %d is a part of a larger tensor, which need not be aligned", stageID)
	case len(s.Consumers(g)) > 0:
		return fmt.Errorf("stream: stage %d is read by another", stageID)
	}
	g.Streamed = true
	s.record("stream", stageID)
	return nil
}
