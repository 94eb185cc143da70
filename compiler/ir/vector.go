package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Lanes is, in a vector loop, a value whose lanes are computed one by one.
type Lanes struct {
	Lane   *expr.Var
	Values []expr.Expr
}

// DType returns the type of a lane.
func (l *Lanes) DType() array.DType { return l.Values[0].DType() }

// Operands returns the loop's variable and the lanes.
func (l *Lanes) Operands() []expr.Expr { return append([]expr.Expr{l.Lane}, l.Values...) }

// Map replaces the lanes.
func (l *Lanes) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	c := &Lanes{Lane: l.Lane, Values: make([]expr.Expr, len(l.Values))}
	for k, x := range l.Values {
		c.Values[k] = f(x)
	}
	return c
}

// Spread is a vector that repeats a few contiguous elements of a tensor.
type Spread struct {
	Tensor *expr.Tensor
	// First is the index of the first of them.
	First expr.Expr
	// Elements is their number.
	Elements int64
}

// Word reports whether they make 32 bits.
func (s *Spread) Word() bool { return s.Elements*s.Tensor.DType.Bytes() == array.Int32.Bytes() }

// DType returns the element type.
func (s *Spread) DType() array.DType { return s.Tensor.DType }

// Operands returns the first element.
func (s *Spread) Operands() []expr.Expr { return []expr.Expr{s.Tensor.At(s.First)} }

// Map returns s unchanged, since its elements are in memory.
func (s *Spread) Map(func(expr.Expr) expr.Expr) expr.Expr { return s }

// NewRegister returns a buffer that is one vector, or a scalar if it has one lane.
func NewRegister(name string, d array.DType, lanes int64) *Buffer {
	return &Buffer{Tensor: Flat(name, d, lanes), Space: Register, Slots: []Slot{{0, lanes}}}
}
