package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Lookup is an element of a table.
type Lookup struct {
	// Table has 256 elements of eight bits.
	Table *array.Array
	// At is an integer of eight bits, which taken as an unsigned one is the element's place.
	At expr.Expr
}

// DType is the type of an element.
func (l *Lookup) DType() array.DType { return l.Table.DType }

// Operands are the place.
func (l *Lookup) Operands() []expr.Expr { return []expr.Expr{l.At} }

// Map replaces the place.
func (l *Lookup) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Lookup{Table: l.Table, At: f(l.At)}
}
