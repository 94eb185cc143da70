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

// Across combines the lanes of a value, one after the other.
type Across struct {
	Op   expr.BinaryOp
	Lane *expr.Var
	// Value has a lane for each value of Lane.
	Value expr.Expr
}

// DType returns the type of a lane.
func (a *Across) DType() array.DType { return a.Value.DType() }

// Operands returns the value.
func (a *Across) Operands() []expr.Expr { return []expr.Expr{a.Value} }

// Map replaces the value.
func (a *Across) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	return &Across{Op: a.Op, Lane: a.Lane, Value: f(a.Value)}
}

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
