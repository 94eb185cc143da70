package program

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Form is a linear function of the extents: Plus and, for each extent, Times per unit of it.
type Form struct {
	Plus  int64
	Times []int64
}

// At returns the number for the given extents.
func (f Form) At(extents []int64) int64 {
	n := f.Plus
	for k, times := range f.Times {
		n += times * extents[k]
	}
	return n
}

// Shrinks reports whether the number decreases as some extent grows.
func (f Form) Shrinks() bool {
	return slices.ContainsFunc(f.Times, func(n int64) bool { return n < 0 })
}

// Expr returns the number as an expression of an execution's extents.
func (f Form) Expr(counts []*expr.Tensor) expr.Expr {
	e := expr.I(0)
	for k, times := range f.Times {
		e = expr.AddE(e, expr.MulE(counts[k].At(), expr.I(times)))
	}
	return expr.AddE(e, expr.I(f.Plus))
}

// shifted returns the number in a program with so many extents before those of the form.
func (f Form) shifted(extents int) Form {
	return Form{f.Plus, append(make([]int64, extents), f.Times...)}
}
