package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MaxStatements bounds the size of a kernel, before and after unrolling.
const MaxStatements = 1 << 14

// Space says where a buffer lives.
type Space uint8

// The memory spaces. Scratch buffers are allocated by the kernel where an Alloc stands.
const (
	Argument Space = iota
	Prepared
	Scratch
)

// Kind is how the iterations of a loop are run.
type Kind uint8

// The kinds of loops. Parallel iterations may run at once, on different workers; those of a vector loop are the lanes
// of one vector; an unrolled loop is written out; a dot loop sums products of neighbours, as instructions for it do.
const (
	Serial Kind = iota
	Parallel
	Vector
	Unrolled
	Dot
)

// Buffer is flat memory.
type Buffer struct {
	// Tensor is the buffer's identity in loads: one dimension of as many elements as the buffer holds.
	Tensor *expr.Tensor
	Space  Space
	// Index is the number of the argument or of the prepared constant.
	Index int
	// Streamed is set for an output whose vectors are stored past the caches.
	Streamed bool
	// AheadBytes is how far ahead the buffer is fetched when it is read; 0 = not at all.
	AheadBytes int64
}

// Flat is the tensor of a buffer.
func Flat(name string, d array.DType, elements int64) *expr.Tensor {
	return &expr.Tensor{Name: name, DType: d, Shape: []int64{elements}, Role: expr.Input}
}

// Elements is the buffer's length.
func (b *Buffer) Elements() int64 { return b.Tensor.Shape[0] }

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int64 { return b.Elements() * b.Tensor.DType.Bytes() }

// Func is a kernel.
type Func struct {
	Workload *expr.Workload
	// Args are the kernel's arguments in the workload's order; a packed constant's is nil.
	Args []*Buffer
	// Prepared are the packed constants.
	Prepared []Pack
	Body     Block
}

// With is the same kernel with another body.
func (f *Func) With(body Block) *Func {
	c := *f
	c.Body = body
	return &c
}

// Pack is one packed constant: a kernel of its own that computes the packed buffer from the constant.
type Pack struct {
	// Constant is the index in Workload.Constants.
	Constant int
	Buffer   *Buffer
	// Workload computes the packed tensor (its only output) from the constant (its only constant).
	Workload *expr.Workload
	// Dims are the layout, and Transform what is computed before; nil for nothing.
	Dims      []schedule.PackDim
	Transform *schedule.Transform
}

// Stmt is a statement: *For, *If, *Let, *Alloc or *Store. Loads and stores have one flat index.
type Stmt interface{ stmt() }

// Block is a sequence of statements.
type Block []Stmt

// For runs Body for 0 <= Var < Extent.
type For struct {
	Var    *expr.Var
	Extent int64
	Kind   Kind
	Body   Block
}

// If runs Then where Cond holds and Else elsewhere.
type If struct {
	Cond       expr.Expr
	Then, Else Block
}

// Let names a value for the rest of its block.
type Let struct {
	Var   *expr.Var
	Value expr.Expr
}

// Alloc makes a scratch buffer for the rest of its block.
type Alloc struct {
	Buffer *Buffer
}

// Store writes one element.
type Store struct {
	Buffer *Buffer
	Index  expr.Expr
	Value  expr.Expr
}

func (*For) stmt()   {}
func (*If) stmt()    {}
func (*Let) stmt()   {}
func (*Alloc) stmt() {}
func (*Store) stmt() {}
