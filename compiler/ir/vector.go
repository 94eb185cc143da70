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

// DType is the type of a lane.
func (l *Lanes) DType() array.DType { return l.Values[0].DType() }

// Operands are the loop's variable and the lanes.
func (l *Lanes) Operands() []expr.Expr { return append([]expr.Expr{l.Lane}, l.Values...) }

// Map replaces the lanes.
func (l *Lanes) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	c := &Lanes{Lane: l.Lane, Values: make([]expr.Expr, len(l.Values))}
	for k, x := range l.Values {
		c.Values[k] = f(x)
	}
	return c
}

// Spread is a vector of the neighbouring elements of a tensor that make 32 bits, again and again.
type Spread struct {
	Tensor *expr.Tensor
	// First is the index of the first of them.
	First expr.Expr
}

// DType is the type of an element.
func (s *Spread) DType() array.DType { return s.Tensor.DType }

// Operands are the first element.
func (s *Spread) Operands() []expr.Expr { return []expr.Expr{s.Tensor.At(s.First)} }

// Map replaces nothing: what is spread lies in memory.
func (s *Spread) Map(func(expr.Expr) expr.Expr) expr.Expr { return s }

// Picked is, in a vector loop, a value whose lanes are picked from one or two vectors of elements that lie side by
// side, as those of a few groups of channels.
type Picked struct {
	Lane *expr.Var
	// From are the first elements of the vectors, each of Width elements of one type.
	From  []*expr.Load
	Width int64
	// Picks has for each lane the place of its element: those of the second vector come behind those of the first.
	Picks []int64
}

// DType is the type of a lane.
func (p *Picked) DType() array.DType { return p.From[0].DType() }

// Operands are the loop's variable and the first elements.
func (p *Picked) Operands() []expr.Expr {
	list := []expr.Expr{p.Lane}
	for _, l := range p.From {
		list = append(list, l)
	}
	return list
}

// Map replaces first elements by others.
func (p *Picked) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	c := *p
	c.From = make([]*expr.Load, len(p.From))
	for k, l := range p.From {
		c.From[k] = f(l).(*expr.Load)
	}
	return &c
}

// Source is one of the vectors, with its lanes those of a variable.
func (p *Picked) Source(k int, lane *expr.Var) *expr.Load {
	return p.From[k].Tensor.At(expr.AddE(p.From[k].Index[0], lane)).(*expr.Load)
}

// NewRegister is a buffer that is one vector, or a scalar where it has one lane.
func NewRegister(name string, d array.DType, lanes int64) *Buffer {
	return &Buffer{Tensor: Flat(name, d, lanes), Space: Register, Slots: []Slot{{0, lanes}}}
}
