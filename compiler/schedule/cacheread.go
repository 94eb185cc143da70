package schedule

import (
	"fmt"
	"slices"

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
