package expr

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// variables returns the axes and then the reduction axes.
func (t *Tensor) variables() []*Var { return slices.Concat(t.Axes, t.Reduce) }

// IsOpen reports whether some axis of the workload has a limit.
func (w *Workload) IsOpen() bool {
	return slices.ContainsFunc(w.Stages, func(t *Tensor) bool {
		return slices.ContainsFunc(t.variables(), func(v *Var) bool { return v.Limit != nil })
	})
}

// Held returns the number of positions along an axis that exist in an execution.
func (v *Var) Held() Expr {
	if v.Limit == nil {
		return I(v.Extent)
	}
	return v.Limit
}

// Within returns the condition that a position along an axis exists in an execution; nil if all positions do.
func (v *Var) Within(position Expr) Expr {
	if v.Limit == nil {
		return nil
	}
	return Bin(Lt, position, v.Limit)
}

// Masked returns a term of a reduction, or the combiner's identity if a position along an axis does not exist in an
// execution.
func (v *Var) Masked(position, term Expr, c Combiner) Expr {
	if v.Limit == nil {
		return term
	}
	return Sel(v.Within(position), term, c.Identity(term.DType()))
}

// joinedLimit returns the limit of an axis that is merged with a following axis of extent by.
func joinedLimit(limit Expr, by int64) Expr {
	if limit == nil {
		return nil
	}
	return Simplify(MulE(limit, I(by)))
}

// checkLimit rejects limits that are not known when a kernel starts.
func checkLimit(v *Var) (err error) {
	if v.Limit == nil {
		return nil
	}
	if v.Limit.DType() != array.Int64 {
		return fmt.Errorf("the limit of axis %s is %v, not i64", v.Name, v.Limit.DType())
	}
	Walk(v.Limit, func(x Expr) {
		switch n := x.(type) {
		case *Var:
			err = fmt.Errorf("the limit of axis %s depends on %s", v.Name, n.Name)
		case *Load:
			if n.Tensor.Max == 0 {
				err = fmt.Errorf("the limit of axis %s is read from %s, which is not a count", v.Name, n.Tensor.Name)
			}
		}
	})
	return err
}

// Counts returns the inputs that hold extents of an execution, with their maxima.
func (w *Workload) Counts() map[*Tensor]int64 {
	counts := map[*Tensor]int64{}
	for _, t := range w.Inputs {
		if t.Max > 0 {
			counts[t] = t.Max
		}
	}
	return counts
}
