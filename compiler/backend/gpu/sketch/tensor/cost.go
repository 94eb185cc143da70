package tensor

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/product"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// What a multiprocessor does in a cycle, and what waiting costs it. Estimates for Hopper, of which nothing was
// measured yet.
const (
	// bitLanes is the bits of either factor that tensor cores multiply and add by the instructions that a warp has:
	// 1024 products of bfloat16.
	bitLanes = 1024.0 * 16
	// sharedLanes is the words of shared memory, operations the instructions of threads.
	sharedLanes, operations = 32.0, 128.0
	// stepWait is the cycles that fetching operands takes a block that has nothing else to do meanwhile.
	stepWait = 600.0
	// copyOperations is the instructions of a thread for each copy into shared memory, loadOperations those for each
	// element of a fragment that it loads and rounds.
	copyOperations, loadOperations = 6.0, 2.0
)

// Cost implements space.Structure: the longest of tensor cores, other instructions, shared and global memory in each
// step, and waves of blocks that do not fit side by side.
func (p *tile) Cost(q parameters) float64 {
	if p.format.Warpgroup() {
		return p.costOfWarpgroups(q)
	}
	box := p.box(q)
	steps, terms := p.Steps(box)
	warps := float64(q.tall * q.wide)
	perWarp := float64(terms*q.rows*q.columns) * ir.MatrixRows * ir.MatrixColumns
	bits := 32 / float64(p.format.Packed())
	products := 1.0
	if p.format == schedule.TF32Compensated {
		products = 3
	}
	tensor := warps * perWarp * products * bits / bitLanes
	fragments := warps * float64(terms) * float64(q.rows*ir.MatrixRows+q.columns*ir.MatrixColumns)
	fetched := float64(p.FetchedBytes(box))
	copies := fetched / float64(p.Operands[0].Load.Tensor.DType.Bytes()*p.AtOnce(box, p.fetching(q)))
	shared := fragments / sharedLanes
	issued := (fragments*loadOperations*products + copies*copyOperations) / operations
	resident := p.resident(q)
	blocks := p.Blocks(box)
	work := max(tensor, shared, issued, p.Traffic(box))
	together := float64(min(resident, nest.CeilDiv(blocks, int64(p.GPU.Multiprocessors))))
	waves := float64(nest.CeilDiv(blocks, resident*int64(p.GPU.Multiprocessors)))
	// A warp alone does not keep the cores busy: an instruction waits for the one before.
	if busy := together * warps; busy < 8 {
		work *= 8 / busy
	}
	wait := max(0, stepWait-float64(q.stages-1)*work) / together
	return waves*(float64(steps)*max(work*together, work+wait)+stepWait) + p.AddUpCost(q.parts)
}

// resident is how many blocks a multiprocessor holds.
func (p *tile) resident(q parameters) int64 {
	threads := p.fetching(q).Threads
	registers := threads * (product.OwnRegisters + p.registers(q))
	return max(1, min(int64(p.GPU.MultiprocessorThreads)/threads, int64(p.GPU.MultiprocessorRegisters)/registers,
		p.GPU.MultiprocessorSharedBytes/max(1, p.SharedBytes(p.box(q), p.fetching(q)))))
}
