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

// The memory spaces. Scratch is what a kernel allocates where an Alloc stands, before it is decided where: in named
// variables, on the stack, in the worker's part of the workspace, or in the part that all workers share; on a GPU, in
// the registers of each thread (Private), in the memory that a block shares, or in the workspace. A Tile is a register
// of a processor for instructions that multiply matrices.
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

// Allocated reports whether buffers of a space stand behind an Alloc.
func (s Space) Allocated() bool { return s >= Scratch }

// Slot is a run of a buffer's elements that is kept in one variable: a vector of lanes, or a scalar.
type Slot struct {
	Base, Lanes int64
}

// Kind is how the iterations of a loop are run.
type Kind uint8

// The kinds of loops. Parallel iterations may run at once, on different workers; those of a vector loop are the lanes
// of one vector; an unrolled loop is written out; a dot loop sums products of neighbours, as instructions for it do.
// Iterations on blocks are those of a GPU's grid, in which they are a launch; iterations on threads are those of a
// block. All threads of a block take the same way through what is between the two, and the threads of a loop whose
// extent is less than the block's threads are the first ones. Iterations on matrices are terms of sums that
// instructions take several of. Lanewise iterations combine what neighbouring threads of a warp have. A walk is over
// tiles that a block computes one after another: another block might have any of them, so that none needs what another
// leaves in global memory.
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
	Walk
)

// Buffer is flat memory.
type Buffer struct {
	// Tensor is the buffer's identity in loads: one dimension of as many elements as the buffer holds.
	Tensor *expr.Tensor
	Space  Space
	// Index is the number of the argument, of the prepared constant or of the tile register.
	Index int
	// Streamed is set for an output whose vectors are stored past the caches.
	Streamed bool
	// AheadBytes is how far ahead the buffer is fetched when it is read; 0 = not at all.
	AheadBytes int64
	// Steps is for how many steps of the loop around it a shared buffer is to be filled ahead, that of the step itself
	// included; 0 = not ahead.
	Steps int64
	// Row and Rows are the elements of a row and the rows of a matrix in a shared buffer that is swizzled, or a ring
	// of such; 0 = it is not.
	Row, Rows int64
	// Bits is set where elements are known to be below 2^Bits, and not negative; 0 = they may be any of their type.
	Bits int64
	// Slots are the variables of a buffer in registers, in the order of their elements.
	Slots []Slot
	// Spare is how many elements more there is room for behind the last: instructions read them, and what they make of
	// them is not used.
	Spare int64
	// OffsetBytes is where a buffer lies in its part of the workspace.
	OffsetBytes int64
}

// Flat is the tensor of a buffer.
func Flat(name string, d array.DType, elements int64) *expr.Tensor {
	return &expr.Tensor{Name: name, DType: d, Shape: []int64{elements}, Role: expr.Input}
}

// Elements is the buffer's length.
func (b *Buffer) Elements() int64 { return b.Tensor.Shape[0] }

// IsTile reports whether a buffer in registers is a tile of accumulators: so many that what is done with them is worth
// some care.
func (b *Buffer) IsTile() bool { return len(b.Slots) >= tileSlots }

// tileSlots is how many variables make a tile.
const tileSlots = 4

// Room is how many elements there is memory for.
func (b *Buffer) Room() int64 { return b.Elements() + b.Spare }

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int64 { return b.Room() * b.Tensor.DType.Bytes() }

// Func is a kernel.
type Func struct {
	Workload *expr.Workload
	// Args are the kernel's arguments in the workload's order; a packed constant's is nil.
	Args []*Buffer
	// Prepared are the packed constants.
	Prepared []Pack
	// WorkspaceBytes is the size of the workspace that all workers share, WorkerBytes that of each worker's.
	WorkspaceBytes, WorkerBytes int64
	// Streams is set when something outside of parallel loops is stored past the caches.
	Streams bool
	Body    Block
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

// Stmt is a statement: *For, *If, *Let, *Alloc, *Define, *Store, *Combine, *DotProduct, *Squares, *SquareProduct,
// *Transpose, *Prefetch,
// *Fence, *Barrier, *Copy, *CopyAsync, *Commit, *Wait, *LoadMatrices, *MultiplyMatrices, *MultiplyShared,
// *FenceRegisters, *CommitProducts, *WaitProducts, *FenceAsync, *CopyBox, *InitPhases, *EndPhases, *Expect,
// *WaitPhase, *TileZero, *TileLoad, *TileProduct or *TileStore. Loads and stores have one flat index.
type Stmt interface{ stmt() }

// Block is a sequence of statements.
type Block []Stmt

// For runs Body for 0 <= Var < Extent.
type For struct {
	Var    *expr.Var
	Extent int64
	Kind   Kind
	// Format is that of the elements of a loop on matrices.
	Format schedule.Format
	// Range is which values the variable takes; nil for all below the extent.
	Range *Range
	// Tiles are what the blocks of a loop on blocks walk over; nil where each has one.
	Tiles *Tiles
	Body  Block
	// Captured are the variables of around that the body of a parallel loop uses, Shared the buffers in the workspace.
	// They are known once the loop has been outlined.
	Captured []*expr.Var
	Shared   []*Buffer
	// Streams is set for a parallel loop whose body stores past the caches.
	Streams bool
}

// With is the same loop with another body.
func (n *For) With(body Block) *For {
	c := *n
	c.Body = body
	return &c
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

// Define keeps a value in a register from here to the end of its block: a vector with a lane for each value of Lane,
// or a scalar where that is nil. The buffer is one that NewRegister makes, and nothing else is stored to it.
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
	// Streamed is set where a vector is stored past the caches.
	Streamed bool
}

// Step takes the step of a reduction apart, element = element op term; ok is false when the store is none.
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

// Combine combines, in a vector loop, the lanes of a term with one element that is the same for all of them:
// element = element op term, lane after lane.
type Combine struct {
	Op     expr.BinaryOp
	Buffer *Buffer
	Index  expr.Expr
	// Before is the element as it was.
	Before, Term expr.Expr
}

// DotProduct adds to each lane of a vector of sums the products of Terms neighbouring lanes of two operands, which is
// one instruction on machines that have it.
type DotProduct struct {
	Lane *expr.Var
	// Buffer and Index are where the sum of a lane lies, Before is the sum as it was.
	Buffer *Buffer
	Index  expr.Expr
	Before expr.Expr
	Terms  int64
	// A and B are in registers.
	A, B *Buffer
	// Few is set where the elements of A have four bits.
	Few bool
}

// Transpose copies a square of elements with its rows and columns exchanged, as many as Columns has entries. Its rows
// lie RowElements apart from First on; column k is stored side by side from Columns[k] on.
type Transpose struct {
	From        *expr.Tensor
	First       expr.Linear
	RowElements int64
	To          *Buffer
	Columns     []expr.Linear
}

// Prefetch fetches a line of memory: the one that lies so many bytes behind an element.
type Prefetch struct {
	Tensor *expr.Tensor
	Index  expr.Linear
	// Bytes is the distance, which may vary with the loops around; where it does, the line will be read several times.
	Bytes expr.Linear
	// Write is set for a line that will be written.
	Write bool
}

// Fence keeps the statements behind it from being moved before it by a compiler.
type Fence struct{}

// Barrier is where the threads of a block wait for one another. What each wrote before it the others read behind it.
type Barrier struct{}

// Copy copies neighbouring elements from global to shared memory.
type Copy struct {
	To    *Buffer
	Index expr.Expr
	// From is the first of the elements.
	From     *expr.Load
	Elements int64
	// Valid is the condition under which there is something to copy, and zero is written elsewhere; nil for always.
	Valid expr.Expr
}

// CopyAsync begins a copy. Nobody may use it before a Wait of the thread and, if it is another thread, a Barrier
// behind that.
type CopyAsync struct{ Copy }

// Commit closes the group of copies that a thread has begun.
type Commit struct{}

// Wait keeps a thread until at most so many of its groups of copies are under way, the latest ones.
type Wait struct{ Groups int64 }

func (*For) stmt()        {}
func (*If) stmt()         {}
func (*Let) stmt()        {}
func (*Alloc) stmt()      {}
func (*Define) stmt()     {}
func (*Store) stmt()      {}
func (*Combine) stmt()    {}
func (*DotProduct) stmt() {}
func (*Transpose) stmt()  {}
func (*Prefetch) stmt()   {}
func (*Fence) stmt()      {}
func (*Barrier) stmt()    {}
func (*Copy) stmt()       {}
func (*Commit) stmt()     {}
func (*Wait) stmt()       {}
