package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Lookup is an element of a table.
type Lookup struct {
	// Table has 256 8-bit elements.
	Table *array.Array
	// At is an 8-bit integer; as an unsigned number it is the element's index.
	At expr.Expr
}

// DType returns the element type.
func (l *Lookup) DType() array.DType { return l.Table.DType }

// Operands returns the index.
func (l *Lookup) Operands() []expr.Expr { return []expr.Expr{l.At} }

// Map replaces the index.
func (l *Lookup) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Lookup{Table: l.Table, At: f(l.At)}
}
