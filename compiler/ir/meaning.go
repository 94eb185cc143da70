package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Meaning is what an instruction computes, as a program of plain loops over its operands.
type Meaning struct {
	// Operands holds for each parameter the buffer of its elements, from the operand's index on, or the variable of a
	// value.
	Operands []Formal
	// Body consists of serial and vector loops, allocations and stores. Iterations of a vector loop are lanes that the
	// instruction computes alike.
	Body Block
}

// Formal is an operand of a meaning. That of an ordered operand is empty.
type Formal struct {
	// Buffer holds the elements, or those of one row or thread. Registers hold as many elements as fit, the first one
	// in the lowest bits.
	Buffer *Buffer
	Value  *expr.Var
	// Row is the distance between rows of an operand at a stride, Thread that between the elements of consecutive
	// threads, each of which has an operand of its own; nil otherwise. An index is a sum
	//
	//	thread * Thread + row * Row + place
	//
	// of which a call determines the distances: Row is the operand's Stride, or the Row of a swizzled buffer, and
	// elements of several threads lie where the operand of each thread does.
	Row, Thread *expr.Var
}

// NewMeaning returns the meaning of an instruction whose operands have the elements of tensors, by body. For a group,
// private operands are those of its threads.
func NewMeaning(i *Instruction, body func(f []Formal) Block, elements ...*expr.Tensor) *Meaning {
	m := &Meaning{Operands: make([]Formal, len(elements))}
	for k, t := range elements {
		p := i.Params[k]
		f := Formal{Buffer: &Buffer{Tensor: t, Space: p.In}}
		if p.HasRows() {
			f.Row = &expr.Var{Name: "row"}
		}
		if i.By == ByGroup && (p.In == Private || p.Bytes > 0) {
			f.Thread = &expr.Var{Name: "thread"}
		}
		m.Operands[k] = f
	}
	m.Body = body(m.Operands)
	return m
}

// HasRows reports whether the elements of an operand are rows at a stride.
func (p Param) HasRows() bool { return p.Form == Strided || p.Form == StridedBytes || p.Swizzled }

// At returns an element of one row, for all threads.
func (f Formal) At(place expr.Expr) expr.Expr { return f.Buffer.Tensor.At(place) }

// Index returns the index of a place in a row of a thread. Formals of one row or for all threads ignore these.
func (f Formal) Index(thread, row, place expr.Expr) expr.Expr {
	if f.Row != nil {
		place = expr.AddE(expr.MulE(row, f.Row), place)
	}
	if f.Thread != nil {
		place = expr.AddE(expr.MulE(thread, f.Thread), place)
	}
	return place
}

// Place divides an index into the thread, the row, and the place among the elements of the buffer.
func (f Formal) Place(index expr.Expr) (thread, row, place expr.Linear) {
	all := expr.Linearize(index)
	place = expr.Linear{Const: all.Const}
	for _, t := range all.Terms {
		one := expr.Linear{Terms: []expr.Term{t}}
		multiple, distance := expr.Linear{Const: t.Coef}, t.Atom
		if n, ok := t.Atom.(*expr.Binary); ok && n.Op == expr.Mul {
			multiple, distance = expr.Linearize(n.A).Scale(t.Coef), n.B
		}
		switch {
		case f.Thread != nil && distance == f.Thread:
			thread = thread.Plus(multiple, 1)
		case f.Row != nil && distance == f.Row:
			row = row.Plus(multiple, 1)
		default:
			place = place.Plus(one, 1)
		}
	}
	return thread, row, place
}

// Add returns the step that adds a term to an element, as a multiply-add where the term is a product of floats.
func Add(b *Buffer, index, term expr.Expr) *Store {
	return &Store{Buffer: b, Index: index, Value: expr.FusedBin(expr.Add, b.Tensor.At(index), term)}
}

// Around returns loops, the first one outermost, around a block.
func Around(loops []*For, body Block) Block {
	for k := len(loops) - 1; k >= 0; k-- {
		body = Block{loops[k].With(body)}
	}
	return body
}

// Nest returns loops of a kind over variables, the first one outermost, around a block.
func Nest(kind Kind, body Block, vars ...*expr.Var) Block {
	for k := len(vars) - 1; k >= 0; k-- {
		body = Block{&For{Var: vars[k], Extent: vars[k].Extent, Kind: kind, Body: body}}
	}
	return body
}
