package kerneltest

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// limits returns how many elements of a tensor an execution uses along each dimension.
func limits(w *expr.Workload, t *expr.Tensor, counts map[*expr.Tensor]int64) []int64 {
	used := slices.Clone(t.Shape)
	if t.Role == expr.Computed {
		for k, v := range t.Axes {
			used[k] = held(v, counts)
		}
		return used
	}
	read := make([]int64, len(used))
	for _, s := range w.Stages {
		for _, l := range expr.Loads(s.Body) {
			for k := range l.Index {
				if l.Tensor == t {
					read[k] = max(read[k], endOf(l, k, counts))
				}
			}
		}
	}
	for k, end := range read {
		if end > 0 {
			used[k] = min(used[k], end)
		}
	}
	return used
}

// endOf returns the end of what a load reads along a dimension within the limits of axes.
func endOf(l *expr.Load, k int, counts map[*expr.Tensor]int64) int64 {
	index := expr.Linearize(l.Index[k])
	end := index.Const + 1
	for _, term := range index.Terms {
		v, isVar := term.Atom.(*expr.Var)
		if !isVar {
			return l.Tensor.Shape[k]
		}
		end += max(0, term.Coef*(held(v, counts)-1))
	}
	return end
}

// held returns the number of positions along an axis that an execution has.
func held(v *expr.Var, counts map[*expr.Tensor]int64) int64 {
	if v.Limit == nil {
		return v.Extent
	}
	return min(v.Extent, limitAt(v.Limit, counts))
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
