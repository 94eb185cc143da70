package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// matrixBytes is a thread's share of four matrices that the warp loads with one instruction.
const matrixBytes = 16.0

// Cost implements searchspace.Structure. It takes the maximum of tensor cores, other instructions, shared and global
// memory per step, and adds up the waves of blocks.
func (p *tensorTile) Cost(q tensorParameters) float64 {
	p = p.of(q)
	if p.format.Warpgroup() {
		return p.costOfWarpgroups(q)
	}
	box := p.box(q)
	_, terms := p.Steps(box)
	warps := float64(q.tall * q.wide)
	perWarp := float64(terms*q.rows*q.columns) * nvidia.MatrixRows * nvidia.MatrixColumns
	bits := 32 / float64(p.format.Packed())
	products := 1.0
	if p.format == schedule.TF32Compensated {
		products = 3
	}
	tensor := warps * perWarp * products * bits / cost.MatrixBits
	words, loads := p.fragments(q, warps*float64(terms))
	fetched := float64(p.FetchedBytes(box))
	copies := float64(p.AllCopies(box, p.fetching(q)))
	shared := (words + fetched/4) / cost.SharedWords
	issued := (loads*products + copies*copyOperations) / cost.Lanes
	l := p.Launch(q.scheduler, box, q.stages, p.resident(q))
	work := max(tensor, shared, issued, p.Traffic(q.scheduler, box, l))
	work = cost.Exposed(work, l.Concurrent*warps)
	wait := max(0, cost.Latency-float64(q.stages-1)*work)/l.Concurrent + stepWait
	return p.Cycles(l, box, work, wait)
}

// fragments returns the loads of warps for the given number of terms: words of shared memory, and thread instructions.
func (p *tensorTile) fragments(q tensorParameters, terms float64) (words, operations float64) {
	box, f := p.box(q), p.fetching(q)
	for _, o := range p.Operands {
		lines := q.columns * nvidia.MatrixColumns
		if p.Reads(o, p.Rows) {
			lines = q.rows * nvidia.MatrixRows
		}
		elements, bytes := terms*float64(lines), float64(o.Load.DType().Bytes())
		if !p.Loads(o, box, f) {
			words, operations = words+elements, operations+elements*loadOperations
			continue
		}
		each := bytes / matrixBytes
		if lines == nvidia.MatrixColumns { // for a single matrix, two registers at once
			each *= 2
		}
		words, operations = words+elements*bytes/4, operations+elements*each
	}
	return words, operations
}

// resident returns how many blocks a multiprocessor holds.
func (p *tensorTile) resident(q tensorParameters) int64 {
	f := p.fetching(q)
	return cost.Residents(p.GPU, f.Threads, OwnRegisters+p.registers(q), p.SharedBytes(p.box(q), f))
}
