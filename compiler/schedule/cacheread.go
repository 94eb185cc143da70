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
	return s.copied("cache-read", stageID, load, perm, func(g *Stage, t *expr.Tensor) (copied *expr.Tensor, at func(*expr.Load) expr.Expr, err error) {
		if !isPermutation(perm, len(t.Shape)) || len(perm) == 0 {
			return nil, nil, fmt.Errorf("%v does not order the %d dimensions of the tensor", perm, len(t.Shape))
		}
		shape := make([]int64, len(perm))
		for k, d := range perm {
			shape[k] = t.Shape[d]
		}
		copied = expr.Compute(t.Name+"_copy", shape, func(i []expr.Expr) expr.Expr {
			at := make([]expr.Expr, len(perm))
			for k, d := range perm {
				at[d] = i[k]
			}
			return t.At(at...)
		})
		return copied, func(l *expr.Load) expr.Expr {
			at := make([]expr.Expr, len(perm))
			for k, d := range perm {
				at[k] = l.Index[d]
			}
			return copied.At(at...)
		}, nil
	})
}

// copied applies a primitive that makes a stage read a tensor through a copy, a new stage, whose number it returns.
// through returns the copy, and what replaces each load of the tensor.
func (s *Schedule) copied(op string, stageID, load int, args []int, through func(g *Stage, t *expr.Tensor) (*expr.Tensor, func(*expr.Load) expr.Expr, error)) (id int, err error) {
	err = s.change(op, stageID, append([]int{load}, args...), func(g *Stage) error {
		t, err := g.loaded(load)
		if err != nil {
			return err
		}
		copied, at, err := through(g, t)
		if err != nil {
			return err
		}
		g.Body, id = expr.RewriteLoads(g.Body, t, at), s.added(copied).ID
		return nil
	})
	return id, err
}

// loaded returns the tensor at a position among the distinct ones in the stage's body.
func (g *Stage) loaded(load int) (*expr.Tensor, error) {
	tensors := g.Operands()
	if load < 0 || load >= len(tensors) {
		return nil, fmt.Errorf("stage %d loads no tensor %d", g.ID, load)
	}
	return tensors[load], nil
}

// Operands returns the distinct tensors in the stage's body, in order of appearance.
func (g *Stage) Operands() (list []*expr.Tensor) {
	for _, l := range expr.Loads(g.Body) {
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
	copied, err = s.copied("round", stageID, load, nil, func(g *Stage, t *expr.Tensor) (*expr.Tensor, func(*expr.Load) expr.Expr, error) {
		_, _, product := Factors(g.Body)
		switch {
		case g.Combiner != expr.Sum || !product || g.Tensor.DType != array.Float32:
			return nil, nil, fmt.Errorf("stage %d is not a sum of products in float32", stageID)
		case t.DType != array.Float32 || s.Producer(t) == nil:
			return nil, nil, fmt.Errorf("tensor %d of stage %d is not computed in float32", load, stageID)
		}
		rounded := expr.Compute(t.Name+"_rounded", t.Shape, func(i []expr.Expr) expr.Expr { return expr.To(array.BFloat16, t.At(i...)) })
		return rounded, func(l *expr.Load) expr.Expr { return expr.To(array.Float32, rounded.At(l.Index...)) }, nil
	})
	if err == nil {
		s.algorithms = append(s.algorithms, roundedFormats[BF16])
	}
	return copied, err
}
