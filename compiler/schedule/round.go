package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Round makes a sum of products read a float32 tensor through a copy rounded to bfloat16, for bfloat16
// instructions. Load is numbered as in CacheRead, and a stage must compute the tensor. The copy is a new stage,
// whose number is returned. Round requires fast numerics.
func (s *Schedule) Round(stageID, load int) (copied int, err error) {
	g, err := s.stage(stageID)
	if err != nil {
		return 0, fmt.Errorf("round: %w", err)
	}
	tensors := distinctLoads(g.Body)
	_, _, product := Factors(g.Body)
	switch {
	case load < 0 || load >= len(tensors):
		return 0, fmt.Errorf("round: stage %d loads no tensor %d", stageID, load)
	case g.Combiner != expr.Sum || !product || g.Tensor.DType != array.Float32:
		return 0, fmt.Errorf("round: stage %d is not a sum of products in float32", stageID)
	case tensors[load].DType != array.Float32 || s.Producer(tensors[load]) == nil:
		return 0, fmt.Errorf("round: tensor %d of stage %d is not computed in float32", load, stageID)
	}
	t := tensors[load]
	rounded := expr.Compute(t.Name+"_rounded", t.Shape, func(i []expr.Expr) expr.Expr { return expr.To(array.BFloat16, t.At(i...)) })
	g.Body = expr.RewriteLoads(g.Body, t, func(l *expr.Load) expr.Expr { return expr.To(array.Float32, rounded.At(l.Index...)) })
	s.algorithms = append(s.algorithms, roundedFormats[BF16])
	s.record("round", stageID, load)
	return s.added(rounded).ID, nil
}
