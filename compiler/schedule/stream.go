package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Stream stores an output with non-temporal stores, where whole vectors are aligned. An ordinary store first
// fetches the line that it partly changes, and leaves it in a cache in place of another one. Both are wasted if no
// cache holds the results until they are read.
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
