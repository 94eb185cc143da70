package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MaxStatements limits the size of a kernel, before and after unrolling.
const MaxStatements = 1 << 14

// Space is the memory space of a buffer.
type Space uint8

// The memory spaces. Scratch is memory allocated by an Alloc before its place is decided: in named variables, on
// the stack, in the worker's part of the workspace, or in the part shared by all workers; on a GPU, in the
// registers of each thread (Private), in the shared memory of a block, or in the workspace. A Tile is a CPU
// register for matrix instructions.
const (
	Argument Space = iota
	Prepared
	Scratch
	Register
	Stack
	Worker
	Workspace
	Shared
	Private
	Tile
)

// Allocated reports whether buffers of a space are created by an Alloc.
func (s Space) Allocated() bool { return s >= Scratch }

// Slot is a run of a buffer's elements that one variable holds: a vector of lanes, or a scalar.
type Slot struct {
	Base, Lanes int64
}

// Kind is the execution mode of a loop.
type Kind uint8

// The kinds of loops. Parallel iterations may run concurrently on different workers. Iterations of a vector loop
// are lanes of one vector; an unrolled loop is expanded; a dot loop sums products of neighbours for dot-product
// instructions. Iterations over blocks form the grid of a GPU launch; iterations over threads are those of a block.
// Control flow between the two is uniform across a block, and a loop over fewer threads than the block has runs on
// the first ones. Iterations over matrices are terms of sums that instructions take several of. Lanewise iterations
// combine values of neighbouring threads of a warp. A persistent loop runs over tiles that a block computes in
// sequence; since another block might compute any of them, no tile may depend on global memory written by another.
const (
	Serial Kind = iota
	Parallel
	Vector
	Unrolled
	Dot
	Blocks
	Threads
	Matrices
	Lanewise
	Persistent
)

// Buffer is flat memory.
type Buffer struct {
	// Tensor identifies the buffer in loads. It has one dimension with the buffer's elements.
	Tensor *expr.Tensor
	Space  Space
	// Index is the number of the argument, of the prepared constant or of the tile register.
	Index int
	schedule.Access
	// Row and Rows are the elements of a row and the rows of a matrix in a swizzled shared buffer, or a ring of
	// such; 0 if not swizzled.
	Row, Rows int64
	// Bits is set if elements are known to be non-negative and below 2^Bits; 0 means any value of their type.
	Bits int64
	// Slots lists the variables of a buffer in registers, in the order of their elements.
	Slots []Slot
	// Spare is the number of additional elements of memory after the last: instructions may read them, but results
	// do not depend on them.
	Spare int64
	// OffsetBytes is the buffer's offset in its part of the workspace.
	OffsetBytes int64
}

// Flat returns the tensor of a buffer.
func Flat(name string, d array.DType, elements int64) *expr.Tensor {
	return &expr.Tensor{Name: name, DType: d, Shape: []int64{elements}, Role: expr.Input}
}

// Elements returns the buffer's length.
func (b *Buffer) Elements() int64 { return b.Tensor.Shape[0] }

// IsTile reports whether a buffer in registers is a tile of accumulators, large enough for code around it to matter.
func (b *Buffer) IsTile() bool { return len(b.Slots) >= tileSlots }

// tileSlots is the number of variables that make a tile.
const tileSlots = 4

// Room returns the number of elements of allocated memory.
func (b *Buffer) Room() int64 { return b.Elements() + b.Spare }

// Bytes returns the buffer's size.
func (b *Buffer) Bytes() int64 { return b.Room() * b.Tensor.DType.Bytes() }

// Func is a kernel.
type Func struct {
	Workload *expr.Workload
	// Args lists the kernel's arguments in the workload's order; nil for a packed constant.
	Args []*Buffer
	// Prepared lists the packed constants.
	Prepared []Pack
	// WorkspaceBytes is the size of the shared workspace, WorkerBytes that of each worker's.
	WorkspaceBytes, WorkerBytes int64
	// Streams is set if code outside parallel loops contains non-temporal stores.
	Streams bool
	Body    Block
}

// With returns the same kernel with another body.
func (f *Func) With(body Block) *Func {
	c := *f
	c.Body = body
	return &c
}

// Pack is one packed constant: a separate kernel that computes the packed buffer from the constant.
type Pack struct {
	// Constant is the index in Workload.Constants.
	Constant int
	Buffer   *Buffer
	// Workload computes the packed tensor (its only output) from the constant (its only constant).
	Workload *expr.Workload
	// Dims is the layout, and Transform the preceding transformation; nil for none.
	Dims      []schedule.PackDim
	Transform *schedule.Transform
}

// Stmt is a statement: *For, *If, *Let, *Alloc, *Define, *Store, *Copy, *Barrier or *Call. Loads and stores have one
// flat index.
type Stmt interface{ stmt() }

// Block is a sequence of statements.
type Block []Stmt

// For runs Body for 0 <= Var < Extent.
type For struct {
	Var    *expr.Var
	Extent int64
	Kind   Kind
	// Format is the element format of a loop over matrices.
	Format schedule.Format
	// Range restricts the values of the variable; nil means all below the extent.
	Range *Range
	// Tiles describes the tiles of persistent blocks; nil if each block has one.
	Tiles *Tiles
	Body  Block
	// Captured lists the variables that the body of a parallel loop captures, Shared the captured workspace
	// buffers. They are set once the loop has been outlined.
	Captured []*expr.Var
	Shared   []*Buffer
	// Streams is set for a parallel loop whose body contains non-temporal stores.
	Streams bool
}

// With returns the same loop with another body.
func (n *For) With(body Block) *For {
	c := *n
	c.Body = body
	return &c
}

// If runs Then if Cond holds, or else Else.
type If struct {
	Cond       expr.Expr
	Then, Else Block
}

// Let names a value for the rest of its block.
type Let struct {
	Var   *expr.Var
	Value expr.Expr
}

// Alloc allocates a scratch buffer for the rest of its block.
type Alloc struct {
	Buffer *Buffer
}

// Define keeps a value in a register from here to the end of its block: a vector with a lane for each value of
// Lane, or a scalar if that is nil. The buffer comes from NewRegister and is not stored to.
type Define struct {
	Buffer *Buffer
	Lane   *expr.Var
	Value  expr.Expr
}

// Store writes one element.
type Store struct {
	Buffer *Buffer
	Index  expr.Expr
	Value  expr.Expr
	// Streamed is set for a non-temporal vector store.
	Streamed bool
}

// Step matches a reduction step, element = element op term; ok is false for other stores.
func (s *Store) Step() (op expr.BinaryOp, term expr.Expr, ok bool) {
	n, ok := s.Value.(*expr.Binary)
	if !ok {
		return 0, nil, false
	}
	l, ok := n.A.(*expr.Load)
	if !ok || l.Tensor != s.Buffer.Tensor || !expr.Same(l.Index[0], s.Index) {
		return 0, nil, false
	}
	return n.Op, n.B, true
}

// Barrier synchronises the threads of a block. Writes of each thread before it are visible to the others after it.
type Barrier struct{}

// Copy copies contiguous elements from global to shared memory.
type Copy struct {
	To    *Buffer
	Index expr.Expr
	// From is the first of the elements.
	From     *expr.Load
	Elements int64
	// Valid is the condition of the copy; where it fails, zeros are written. nil means always.
	Valid expr.Expr
	// Starts is the kind of asynchronous copy that it starts; nil if it is over when the next statement begins. The
	// data must not be used before the same thread has waited for it and, for other threads, a Barrier after that.
	Starts *Async
}

func (*For) stmt()     {}
func (*If) stmt()      {}
func (*Let) stmt()     {}
func (*Alloc) stmt()   {}
func (*Define) stmt()  {}
func (*Store) stmt()   {}
func (*Barrier) stmt() {}
func (*Copy) stmt()    {}
