package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Costs of a piece.
const (
	// steps is the number of steps per piece.
	steps = 8.0
	// passes is how often an element of the scores is written and read before the second product, and
	// elementOperations the number of instructions for it.
	passes, elementOperations = 6.0, 30.0
	// matrixOperations is a thread's instructions per element of four matrices that a warp loads with one instruction.
	matrixOperations = 1.0 / 8
)

// Cost implements searchspace.Structure. Per piece, it adds the synchronisation of threads to the maximum of
// multiplications, other instructions, shared memory and global memory.
func (a *attention) Cost(q attentionParameters) float64 {
	warps := float64(q.tall * q.wide)
	keys, columns, tile := float64(q.keys()), float64(a.columns()), float64(q.tile())
	terms := float64(a.D)
	products := tile * keys * (terms + columns)
	weights := warps * float64(q.rows*nvidia.MatrixRows) * keys
	operands := warps * (float64(q.rows*nvidia.MatrixRows)*terms + keys/float64(q.wide)*terms + columns/float64(q.wide)*keys)
	multiply, parts := products/cost.Lanes, 1.0
	if a.matrices {
		if a.format == schedule.TF32Compensated {
			parts = 3
		}
		multiply = products * parts * 32 / float64(a.format.Packed()) / cost.MatrixBits
	} else {
		weights *= nvidia.MatrixColumns / 2 // each thread reads its own factors
		operands *= nvidia.MatrixColumns / 2
	}
	words, loads := weights+operands, (weights+operands)*loadOperations*parts
	if a.loads() {
		words, loads = weights+operands/2, weights*loadOperations+operands*matrixOperations
	}
	fetched := keys * (terms + columns) * float64(a.bytes)
	shared := (words + passes*tile*keys) / cost.SharedWords
	issued := (loads + tile*keys*elementOperations + fetched/16*copyOperations) / cost.Lanes
	work := max(multiply, shared, issued, fetched/cost.GlobalBytes)
	blocks := a.Batches * sketch.CeilDiv(a.M, q.tile())
	resident := cost.Residents(a.gpu, q.threads(), OwnRegisters+a.registers(q), a.sharedBytes(q))
	together, waves := cost.Occupy(a.gpu, blocks, resident)
	work = cost.Exposed(work, together*warps)
	wait := steps*stepWait + max(0, cost.Latency-float64(q.stages-1)*work)
	return waves * (float64(a.pieces(q))*max(work*together, work+wait) + cost.Latency)
}
