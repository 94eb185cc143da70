package ir

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Folded is, in a vector loop, a value each of whose lanes is the sum of Factor neighbours, a power of two, among the
// elements of a few vectors that lie one behind the other.
type Folded struct {
	Lane *expr.Var
	// From are the first elements of the vectors, each of Width elements, a power of two: Factor times as many in all
	// as there are lanes.
	From          []*expr.Load
	Width, Factor int64
}

// DType is the type of a lane.
func (f *Folded) DType() array.DType { return f.From[0].DType() }

// Operands are the loop's variable and the first elements.
func (f *Folded) Operands() []expr.Expr {
	list := []expr.Expr{f.Lane}
	for _, l := range f.From {
		list = append(list, l)
	}
	return list
}

// Map replaces first elements by others.
func (f *Folded) Map(to func(expr.Expr) expr.Expr) expr.Expr {
	c := *f
	c.From = slices.Clone(f.From)
	for k, l := range f.From {
		c.From[k] = to(l).(*expr.Load)
	}
	return &c
}

// Source is one of the vectors, with its lanes those of a variable.
func (f *Folded) Source(k int, lane *expr.Var) *expr.Load {
	return f.From[k].Tensor.At(expr.AddE(f.From[k].Index[0], lane)).(*expr.Load)
}
