package tile

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/product"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
)

// What a multiprocessor does in a cycle, and what waiting costs it. Estimates for Hopper, of which nothing was
// measured yet.
const (
	// fmaLanes is the fused multiply-adds in float32, sharedLanes the words of shared memory, globalBytes what comes
	// from global memory when all multiprocessors read.
	fmaLanes, sharedLanes, globalBytes = 128.0, 32.0, 16.0
	// stepWait is the cycles that fetching operands takes a block that has nothing else to do meanwhile.
	stepWait = 600.0
	// copyOperations is the instructions of a thread for each copy into shared memory.
	copyOperations = 6.0
)

// Cost implements space.Structure: the longest of arithmetic, shared and global memory in each step, and waves of
// blocks that do not fit side by side.
func (p *tile) Cost(q parameters) float64 {
	blocks := p.Blocks(q.box())
	steps, terms := p.Steps(q.box())
	perStep := float64(terms * q.tall * q.wide * q.rows * q.columns)
	fetched := float64(p.FetchedBytes(q.box()))
	loop := 1 + 1/float64(max(1, q.unroll))/float64(q.rows*q.columns)
	copies := fetched / float64(p.Bytes*p.AtOnce(q.box(), q.fetching()))
	arithmetic := (perStep*loop + copies*copyOperations) / fmaLanes
	shared := perStep * (1/float64(q.rows) + 1/float64(q.columns)) / sharedLanes
	global := fetched / globalBytes
	resident := p.resident(q)
	together := min(resident, nest.CeilDiv(blocks, int64(p.GPU.Multiprocessors)))
	waves := float64(nest.CeilDiv(blocks, resident*int64(p.GPU.Multiprocessors)))
	busy := max(arithmetic, shared, global) * float64(together)
	// While a step is computed, what its block has begun to fetch for later ones is under way.
	wait := max(0, stepWait-float64(q.stages-1)*max(arithmetic, shared, global)) / float64(together)
	return waves*(float64(steps)*max(busy, busy/float64(together)+wait)+stepWait) + p.AddUpCost(q.parts)
}

// resident is how many blocks a multiprocessor holds.
func (p *tile) resident(q parameters) int64 {
	threads := q.tall * q.wide
	registers := threads * (product.OwnRegisters + q.rows*q.columns*p.Bytes/4)
	return max(1, min(int64(p.GPU.MultiprocessorThreads)/threads, int64(p.GPU.MultiprocessorRegisters)/registers,
		p.GPU.MultiprocessorSharedBytes/max(1, p.SharedBytes(q.box(), q.fetching()))))
}
