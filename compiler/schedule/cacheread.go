package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// CacheRead makes a stage read a tensor through a copy, a new stage, and returns its number. The load is the
// tensor's position among the distinct tensors in the stage's body, in order of appearance. Dimension k of the copy
// is dimension perm[k] of the tensor. A copy computed at a loop of the stage, or of its consumer, holds only the
// part needed there in the order in which it is read: a packed panel.
func (s *Schedule) CacheRead(stageID, load int, perm []int) (cache int, err error) {
	g, err := s.stage(stageID)
	if err != nil {
		return 0, fmt.Errorf("cache-read: %w", err)
	}
	tensors := distinctLoads(g.Body)
	if load < 0 || load >= len(tensors) {
		return 0, fmt.Errorf("cache-read: stage %d loads no tensor %d", stageID, load)
	}
	t := tensors[load]
	if !isPermutation(perm, len(t.Shape)) || len(perm) == 0 {
		return 0, fmt.Errorf("cache-read: %v does not order the %d dimensions of the tensor", perm, len(t.Shape))
	}
	shape := make([]int64, len(perm))
	for k, d := range perm {
		shape[k] = t.Shape[d]
	}
	copied := expr.Compute(t.Name+"_copy", shape, func(i []expr.Expr) expr.Expr {
		at := make([]expr.Expr, len(perm))
		for k, d := range perm {
			at[d] = i[k]
		}
		return t.At(at...)
	})
	g.Body = expr.RewriteLoads(g.Body, t, func(l *expr.Load) expr.Expr {
		at := make([]expr.Expr, len(perm))
		for k, d := range perm {
			at[k] = l.Index[d]
		}
		return copied.At(at...)
	})
	s.record("cache-read", append([]int{stageID, load}, perm...)...)
	return s.added(copied).ID, nil
}

// distinctLoads returns the tensors that an expression loads, in order of appearance.
func distinctLoads(e expr.Expr) []*expr.Tensor {
	var list []*expr.Tensor
	for _, l := range expr.Loads(e) {
		if !slices.Contains(list, l.Tensor) {
			list = append(list, l.Tensor)
		}
	}
	return list
}

func isPermutation(perm []int, n int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for k, d := range sorted {
		if d != k {
			return false
		}
	}
	return len(perm) == n
}

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
