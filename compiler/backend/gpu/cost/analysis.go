package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Analysis is what a kernel asks of a GPU.
type Analysis struct {
	GPU *target.GPU
	// Bytes is the least that the workload moves.
	Bytes float64
	// Launches are those of the kernel, in order.
	Launches []*Launch
}

// Launch is a loop on blocks.
type Launch struct {
	// Blocks and Threads are exact: the blocks of the grid, and the threads of a block.
	Blocks, Threads int64
	// Tiles is what the blocks compute, one each unless they walk. Most is how many of them the block has that has
	// most.
	Tiles int64
	Most  float64
	// Begun is how many tiles a block waits for that it begins: those behind its first one only where none is fetched
	// while the one before is computed.
	Begun float64
	// SharedBytes is the shared memory of a block, rings included. Registers is about how many registers a thread
	// takes: those that its results are kept in are counted, those for addresses and operands guessed.
	SharedBytes, Registers int64
	// Stages is the most steps for which operands are in shared memory or on their way there; 1 = they are not fetched
	// ahead.
	Stages int64
	// Steps is how often a block fetches operands into shared memory.
	Steps float64
	// StepBytes is what a step fetches.
	StepBytes float64
	// Code is about how many instructions are written out.
	Code float64
	// Work is that of an average block.
	Work
}

// Work is what a block does.
type Work struct {
	// Operations are those of all threads.
	Operations Operations
	// Matrix is the multiplications and additions by instructions for matrices, of so many bits in each factor.
	Matrix, MatrixBits float64
	// Global is what the block loads from global memory, Stored what it writes there, Local what it loads from and
	// stores to shared memory.
	Global, Stored, Local Traffic
	// Copies are instructions of threads that copy from global to shared memory, Asynchronous those that do not wait.
	Copies, Asynchronous float64
}

// Traffic is what moves between threads and a memory.
type Traffic struct {
	// Requests is the instructions of warps that move anything.
	Requests float64
	// Bytes is what their threads ask for.
	Bytes float64
	// Units is what is moved for them: sectors of 32 bytes of global memory, or turns of the banks of shared memory.
	Units float64
}

func (t *Traffic) add(o Traffic) {
	t.Requests += o.Requests
	t.Bytes += o.Bytes
	t.Units += o.Units
}

// Analyse analyses a program whose launches are made and whose copies are wide. It only reads the program.
func Analyse(f *ir.Func, g *target.GPU) *Analysis {
	a := &Analysis{GPU: g, Bytes: float64(f.Workload.Bytes())}
	for _, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks {
			a.Launches = append(a.Launches, analysed(n))
		}
	}
	return a
}

// Heaviest is the launch that takes longest; nil when there is none.
func (a *Analysis) Heaviest() (most *Launch) {
	for _, l := range a.Launches {
		if most == nil || a.Cycles(l).Total > a.Cycles(most).Total {
			most = l
		}
	}
	return most
}

func analysed(n *ir.For) *Launch {
	l := &Launch{Blocks: n.Extent, Threads: 1, Stages: 1, Tiles: n.Extent, Most: 1, Begun: 1}
	if n.Tiles != nil {
		l.Tiles, l.Most = n.Tiles.Count, n.Tiles.Most
		if !continued(n) {
			l.Begun = max(1, l.Most)
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
	// guessedRegisters is what a thread keeps besides its results: addresses, counters, and operands under way.
	guessedRegisters = 40
	// sharedAlign is what buffers in shared memory are aligned to, in bytes.
	sharedAlign = 16
)

func aligned(bytes int64) int64 { return (bytes + sharedAlign - 1) / sharedAlign * sharedAlign }

// continued reports whether blocks that walk fetch for the next tile before the last steps of a tile.
func continued(n *ir.For) (found bool) {
	ir.Visit(n.Body, func(st ir.Stmt) {
		walk, ok := st.(*ir.For)
		if !ok || walk.Kind != ir.Walk {
			return
		}
		for _, st := range walk.Body {
			steps, ok := st.(*ir.For)
			found = found || ok && steps.Range == nil && fetchesAhead(steps.Body)
		}
	})
	return found
}

// fetchesAhead reports whether a step has buffers that are filled ahead.
func fetchesAhead(b ir.Block) bool {
	return slices.ContainsFunc(b, func(st ir.Stmt) bool {
		a, ok := st.(*ir.Alloc)
		return ok && a.Buffer.Steps > 1
	})
}
