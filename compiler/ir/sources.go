package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Sources holds the vectors that form the lanes of a value, in a vector loop with the variable Lane.
type Sources struct {
	Lane *expr.Var
	// From holds the first elements of the vectors, each of Width elements of one type.
	From  []*expr.Load
	Width int64
}

// DType returns the type of a lane.
func (s *Sources) DType() array.DType { return s.From[0].DType() }

// Operands returns the loop's variable and the first elements.
func (s *Sources) Operands() []expr.Expr {
	list := []expr.Expr{s.Lane}
	for _, l := range s.From {
		list = append(list, l)
	}
	return list
}

// Source returns one of the vectors, with lanes of the given variable.
func (s *Sources) Source(k int, lane *expr.Var) *expr.Load {
	return s.From[k].Tensor.At(expr.AddE(s.From[k].Index[0], lane)).(*expr.Load)
}

// mapped returns the sources with other first elements.
func (s *Sources) mapped(f func(expr.Expr) expr.Expr) Sources {
	c := *s
	c.From = make([]*expr.Load, len(s.From))
	for k, l := range s.From {
		c.From[k] = f(l).(*expr.Load)
	}
	return c
}
