package tensor

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/product"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// copyOperations is the instructions of a thread for each copy into shared memory, loadOperations those for each
// element of a fragment that it loads and rounds.
const copyOperations, loadOperations = 6.0, 2.0

// Cost implements space.Structure: the longest of tensor cores, other instructions, shared and global memory in each
// step, and waves of blocks that do not fit side by side.
func (p *tile) Cost(q parameters) float64 {
	p = p.of(q)
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
	tensor := warps * perWarp * products * bits / machine.MatrixBits
	fragments := warps * float64(terms) * float64(q.rows*ir.MatrixRows+q.columns*ir.MatrixColumns)
	copies := float64(p.AllCopies(box, p.fetching(q)))
	shared := fragments / machine.SharedWords
	issued := (fragments*loadOperations*products + copies*copyOperations) / machine.Lanes
	l := p.Launch(q.walk, box, q.stages, p.resident(q))
	work := max(tensor, shared, issued, p.Traffic(q.walk, box, l))
	// A warp alone does not keep the cores busy: an instruction waits for the one before.
	if busy := l.Together * warps; busy < machine.BusyWarps {
		work *= machine.BusyWarps / busy
	}
	wait := max(0, machine.Latency-float64(q.stages-1)*work) / l.Together
	return l.Rounds*float64(steps)*max(work*l.Together, work+wait) + l.Begun*machine.Latency + l.After + p.AddUpCost(q.parts)
}

// resident is how many blocks a multiprocessor holds.
func (p *tile) resident(q parameters) int64 {
	f := p.fetching(q)
	return machine.Residents(p.GPU, f.Threads, product.OwnRegisters+p.registers(q), p.SharedBytes(p.box(q), f))
}
