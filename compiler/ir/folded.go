package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Folded is, in a vector loop, a value each of whose lanes is the sum of Factor neighbours, a power of two, among
// the elements of a few consecutive vectors. Their width is a power of two, and they have Factor times as many
// elements as there are lanes.
type Folded struct {
	Sources
	Factor int64
}

// Map replaces the first elements.
func (f *Folded) Map(to func(expr.Expr) expr.Expr) expr.Expr {
	return &Folded{Sources: f.mapped(to), Factor: f.Factor}
}
