package attention

import (
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// What a multiprocessor does in a cycle, and what waiting costs it. Estimates for Hopper, of which nothing was
// measured yet.
const (
	// bitLanes is the bits of either factor that tensor cores multiply and add by the instructions that a warp has.
	bitLanes = 1024.0 * 16
	// sharedLanes is the words of shared memory, globalBytes what comes from global memory when all multiprocessors
	// read, operations the instructions of threads.
	sharedLanes, globalBytes, operations = 32.0, 16.0, 128.0
	// fetchWait is the cycles that fetching a piece takes a block that has nothing else to do meanwhile, stepWait
	// those of one of the steps of a piece, with the barrier behind it.
	fetchWait, stepWait = 600.0, 60.0
	// steps are those of a piece.
	steps = 8.0
	// passes is how often an element of the scores is written and read on its way to the second product, and
	// elementOperations the instructions for it.
	passes, elementOperations = 6.0, 30.0
	// copyOperations is the instructions of a thread for each copy of 16 bytes, loadOperations those for each element
	// of a fragment.
	copyOperations, loadOperations = 6.0, 2.0
)

// Cost implements space.Structure: for each piece the longest of multiplying, other instructions, shared and global
// memory, and what threads wait for one another.
func (a *attention) Cost(q parameters) float64 {
	warps := float64(q.tall * q.wide)
	keys, columns, tile := float64(q.keys()), float64(a.columns()), float64(q.tile())
	terms := float64(a.D)
	products := tile * keys * (terms + columns)
	perWarp := float64(q.rows*ir.MatrixRows)*(terms+keys) + keys/float64(q.wide)*terms + columns/float64(q.wide)*keys
	loads := warps * perWarp
	multiply, parts := products/operations, 1.0
	if a.matrices {
		if a.format == schedule.TF32Compensated {
			parts = 3
		}
		multiply = products * parts * 32 / float64(a.format.Packed()) / bitLanes
	} else {
		loads *= ir.MatrixColumns / 2 // each thread reads what it multiplies
	}
	fetched := keys * (terms + columns) * float64(a.bytes)
	shared := (loads + passes*tile*keys) / sharedLanes
	issued := (loads*loadOperations*parts + tile*keys*elementOperations + fetched/16*copyOperations) / operations
	work := max(multiply, shared, issued, fetched/globalBytes)
	blocks := a.Batches * nest.CeilDiv(a.M, q.tile())
	resident := a.resident(q)
	together := float64(min(resident, nest.CeilDiv(blocks, int64(a.gpu.Multiprocessors))))
	waves := float64(nest.CeilDiv(blocks, resident*int64(a.gpu.Multiprocessors)))
	if busy := together * warps; busy < 8 {
		work *= 8 / busy
	}
	wait := steps*stepWait + max(0, fetchWait-float64(q.stages-1)*work)
	return waves * (float64(a.pieces(q))*max(work*together, work+wait) + fetchWait)
}

// resident is how many blocks a multiprocessor holds.
func (a *attention) resident(q parameters) int64 {
	return max(1, min(int64(a.gpu.MultiprocessorThreads)/q.threads(), int64(a.gpu.MultiprocessorRegisters)/(q.threads()*(40+a.registers(q))),
		a.gpu.MultiprocessorSharedBytes/a.sharedBytes(q)))
}
