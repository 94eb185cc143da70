package kerneltest

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// limits returns how many elements of a tensor an execution uses along each dimension.
func limits(w *expr.Workload, t *expr.Tensor, counts map[*expr.Tensor]int64) []int64 {
	used := slices.Clone(t.Shape)
	note := func(k int, v *expr.Var) {
		if v.Limit != nil {
			used[k] = min(used[k], limitAt(v.Limit, counts))
		}
	}
	if t.Role == expr.Computed {
		for k, v := range t.Axes {
			note(k, v)
		}
		return used
	}
	for _, s := range w.Stages {
		for _, l := range expr.Loads(s.Body) {
			if l.Tensor != t {
				continue
			}
			for k, x := range l.Index {
				if v, isVar := x.(*expr.Var); isVar {
					note(k, v)
				}
			}
		}
	}
	return used
}

// limitAt returns the value of a limit.
func limitAt(e expr.Expr, counts map[*expr.Tensor]int64) int64 {
	l := expr.Linearize(e)
	n := l.Const
	for _, term := range l.Terms {
		n += term.Coef * counts[term.Atom.(*expr.Load).Tensor]
	}
	return n
}

// eachBeyond calls visit with the elements beyond the used part of any dimension.
func eachBeyond(shape, used []int64, visit func(i int64)) {
	for i := range array.Elements(shape) {
		rest, beyond := i, false
		for k := len(shape) - 1; k >= 0; k-- {
			beyond = beyond || rest%shape[k] >= used[k]
			rest /= shape[k]
		}
		if beyond {
			visit(i)
		}
	}
}
