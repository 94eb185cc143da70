package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Shuffled is the value of another thread of the warp: the one whose number differs in the bits of Mask. All
// threads of the warp exchange at the same time.
type Shuffled struct {
	Value expr.Expr
	Mask  int64
}

// DType returns the type of the value.
func (s *Shuffled) DType() array.DType { return s.Value.DType() }

// Operands returns the value.
func (s *Shuffled) Operands() []expr.Expr { return []expr.Expr{s.Value} }

// Map replaces the value.
func (s *Shuffled) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Shuffled{Value: f(s.Value), Mask: s.Mask}
}
