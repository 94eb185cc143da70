package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxInterleaved limits the factor of Interleave.
const maxInterleaved = 64

// Interleave makes a stage read a tensor through a copy in which factor neighbours along dim are contiguous, followed
// by those for the next element along inside, as matrix instructions expect the terms of each column. Load is numbered
// as in CacheRead. The copy is a new stage, whose number is returned. Its dimensions are the tensor's other ones in
// order, then groups of neighbours, inside, and the neighbours of a group. Zeros fill an incomplete last group.
func (s *Schedule) Interleave(stageID, load, dim, inside int, factor int64) (copied int, err error) {
	return s.copied("interleave", stageID, load, []int{dim, inside, int(factor)}, func(g *Stage, t *expr.Tensor) (*expr.Tensor, func(*expr.Load) expr.Expr, error) {
		switch rank := len(t.Shape); {
		case factor < 1 || factor > maxInterleaved:
			return nil, nil, fmt.Errorf("%d neighbours are none, or more than %d", factor, maxInterleaved)
		case expr.Size(g.Body) > maxBodyNodes/2:
			return nil, nil, fmt.Errorf("the body of stage %d would be larger than %d nodes", stageID, maxBodyNodes)
		case dim < 0 || inside < 0 || dim >= rank || inside >= rank || dim == inside:
			return nil, nil, fmt.Errorf("%d and %d are not two of the %d dimensions of the tensor", dim, inside, rank)
		}
		through, by := interleaved(t, dim, inside, factor), expr.I(factor)
		return through, func(l *expr.Load) expr.Expr {
			return through.At(append(others(l.Index, dim, inside), expr.Bin(expr.FloorDiv, l.Index[dim], by), l.Index[inside], expr.Bin(expr.FloorMod, l.Index[dim], by))...)
		}, nil
	})
}

// interleaved returns the interleaved copy of a tensor.
func interleaved(t *expr.Tensor, dim, inside int, factor int64) *expr.Tensor {
	groups := (t.Shape[dim] + factor - 1) / factor
	shape := append(others(t.Shape, dim, inside), groups, t.Shape[inside], factor)
	return expr.Compute(t.Name+"_interleaved", shape, func(i []expr.Expr) expr.Expr {
		outer := len(i) - 3
		at := make([]expr.Expr, 0, len(t.Shape))
		next := 0
		for d := range t.Shape {
			switch d {
			case dim:
				at = append(at, expr.AddE(expr.MulE(i[outer], expr.I(factor)), i[outer+2]))
			case inside:
				at = append(at, i[outer+1])
			default:
				at = append(at, i[next])
				next++
			}
		}
		if t.Shape[dim]%factor == 0 {
			return t.At(at...)
		}
		return expr.Sel(expr.Bin(expr.Lt, at[dim], expr.I(t.Shape[dim])), t.At(at...), expr.Zero(t.DType))
	})
}

// others returns the elements of a list except two.
func others[T any](list []T, a, b int) []T {
	rest := make([]T, 0, len(list)+1)
	for k, x := range list {
		if k != a && k != b {
			rest = append(rest, x)
		}
	}
	return rest
}
