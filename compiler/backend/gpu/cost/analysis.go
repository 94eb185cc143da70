package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Analysis estimates a kernel's demands on a GPU.
type Analysis struct {
	GPU *target.GPU
	// Bytes is the minimum data that the workload moves.
	Bytes float64
	// Launches holds those of the kernel, in order.
	Launches []*Launch
}

// Launch is a loop over blocks.
type Launch struct {
	// Blocks and Threads are exact: the blocks of the grid, and the threads of a block.
	Blocks, Threads int64
	// Tiles is the number of tiles that the blocks compute, one each unless the blocks are persistent. Max is the
	// maximum per block.
	Tiles int64
	Max   float64
	// Begun is the number of tiles whose first operands a block waits for. Tiles after its first one count only if
	// nothing is prefetched during the previous tile.
	Begun float64
	// SharedBytes is the shared memory of a block, including ring buffers. Registers is the approximate number of
	// registers per thread: those of results are counted, those of addresses and operands estimated.
	SharedBytes, Registers int64
	// Stages is the depth of the pipeline: the maximum number of steps whose operands are in shared memory or in
	// flight. 1 means no prefetching.
	Stages int64
	// Steps is how often a block fetches operands into shared memory.
	Steps float64
	// StepBytes is the number of bytes fetched per step.
	StepBytes float64
	// Code is the approximate number of printed instructions.
	Code float64
	// Work is the work of an average block.
	Work
}

// Work describes the work of a block.
type Work struct {
	// Operations counts those of all threads.
	Operations Operations
	// Matrix is the number of multiply-adds of matrix instructions, MatrixBits the size of their factors.
	Matrix, MatrixBits float64
	// Global is what the block loads from global memory, Stored what it writes there, and Local its loads and stores
	// in shared memory.
	Global, Stored, Local Traffic
	// Copies counts the threads' copy instructions from global to shared memory, Asynchronous the asynchronous ones.
	Copies, Asynchronous float64
}

// Traffic is the data moved between threads and a memory.
type Traffic struct {
	// Requests counts the warp instructions that move data.
	Requests float64
	// Bytes is the amount that their threads request.
	Bytes float64
	// Units is the amount moved: 32-byte sectors of global memory, or turns of the shared memory banks.
	Units float64
}

func (t *Traffic) add(o Traffic) {
	t.Requests += o.Requests
	t.Bytes += o.Bytes
	t.Units += o.Units
}

// Analyse analyses a program after launches and wide copies are formed. It does not change the program.
func Analyse(f *ir.Func, g *target.GPU) *Analysis {
	a := &Analysis{GPU: g, Bytes: float64(f.Workload.Bytes())}
	for _, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks {
			a.Launches = append(a.Launches, analysed(n))
		}
	}
	return a
}

// Heaviest returns the launch that takes longest, or nil.
func (a *Analysis) Heaviest() (heaviest *Launch) {
	for _, l := range a.Launches {
		if heaviest == nil || a.Cycles(l).Total > a.Cycles(heaviest).Total {
			heaviest = l
		}
	}
	return heaviest
}

func analysed(n *ir.For) *Launch {
	l := &Launch{Blocks: n.Extent, Threads: 1, Stages: 1, Tiles: n.Extent, Max: 1, Begun: 1}
	if n.Tiles != nil {
		l.Tiles, l.Max = n.Tiles.Count, n.Tiles.Max
		if !continued(n) {
			l.Begun = max(1, l.Max)
		}
	}
	ir.Visit(n.Body, func(st ir.Stmt) {
		if x, ok := st.(*ir.For); ok && x.Kind == ir.Threads {
			l.Threads = max(l.Threads, x.Extent)
		}
	})
	private := int64(0)
	ir.Visit(n.Body, func(st ir.Stmt) {
		a, ok := st.(*ir.Alloc)
		switch {
		case !ok:
		case a.Buffer.Space == ir.Shared:
			l.Stages = max(l.Stages, a.Buffer.Steps)
			l.SharedBytes += aligned(a.Buffer.Bytes()) * max(1, a.Buffer.Steps)
		case a.Buffer.Space == ir.Private:
			private += a.Buffer.Bytes()
		}
	})
	l.Registers = (private/registerBytes+l.Threads-1)/l.Threads + guessedRegisters
	newWalker(l).loop(n)
	return l
}

const (
	registerBytes = 4
	// guessedRegisters is the estimated number of a thread's registers beside results: addresses, counters, and
	// operands in flight.
	guessedRegisters = 40
	// sharedAlign is the alignment of buffers in shared memory in bytes.
	sharedAlign = 16
)

func aligned(bytes int64) int64 { return (bytes + sharedAlign - 1) / sharedAlign * sharedAlign }

// continued reports whether persistent blocks prefetch for the next tile before the last steps of a tile.
func continued(n *ir.For) (found bool) {
	ir.Visit(n.Body, func(st ir.Stmt) {
		walk, ok := st.(*ir.For)
		if !ok || walk.Kind != ir.Persistent {
			return
		}
		for _, st := range walk.Body {
			steps, ok := st.(*ir.For)
			found = found || ok && steps.Range == nil && slices.ContainsFunc(steps.Body, func(st ir.Stmt) bool {
				a, ok := st.(*ir.Alloc)
				return ok && a.Buffer.Steps > 1
			})
		}
	})
	return found
}
