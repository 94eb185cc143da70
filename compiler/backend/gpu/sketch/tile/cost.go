package tile

import "github.com/tilth-dev/tilth/compiler/sketch/nest"

// What a multiprocessor does in a cycle, and what waiting costs it. Estimates for Hopper, of which nothing was
// measured yet.
const (
	// fmaLanes is the fused multiply-adds in float32, sharedLanes the words of shared memory, globalBytes what comes
	// from global memory when all multiprocessors read.
	fmaLanes, sharedLanes, globalBytes = 128.0, 32.0, 16.0
	// stepWait is the cycles that fetching operands takes a block that has nothing else to do meanwhile.
	stepWait = 600.0
)

// Cost implements space.Structure: the longest of arithmetic, shared and global memory in each step, and waves of
// blocks that do not fit side by side.
func (p *product) Cost(q parameters) float64 {
	blocks := int64(1)
	for k, e := range p.extents {
		switch k {
		case p.rows:
			e = nest.CeilDiv(e, q.tall*q.rows)
		case p.columns:
			e = nest.CeilDiv(e, q.wide*q.columns)
		}
		blocks *= e
	}
	ranges := p.ranges(q)
	perStep := 1.0
	for k, r := range p.reduce {
		if k != p.step {
			perStep *= float64(r.Extent)
		}
	}
	perStep *= float64(min(q.depth, p.reduce[p.step].Extent)) * float64(q.tall*q.wide*q.rows*q.columns)
	steps := float64(nest.CeilDiv(p.reduce[p.step].Extent, q.depth))
	fetched := 0.0
	for _, o := range p.operands {
		fetched += float64(o.elements(ranges) * o.load.Tensor.DType.Bytes())
	}
	loop := 1 + 1/float64(max(1, q.unroll))/float64(q.rows*q.columns)
	arithmetic := perStep * loop / fmaLanes
	shared := perStep * (1/float64(q.rows) + 1/float64(q.columns)) / sharedLanes
	global := fetched / globalBytes
	resident := p.resident(q)
	together := min(resident, nest.CeilDiv(blocks, int64(p.gpu.Multiprocessors)))
	waves := float64(nest.CeilDiv(blocks, resident*int64(p.gpu.Multiprocessors)))
	busy := max(arithmetic, shared, global) * float64(together)
	// While a step is computed, what its block has begun to fetch for later ones is under way.
	wait := max(0, stepWait-float64(q.stages-1)*max(arithmetic, shared, global)) / float64(together)
	return waves * (steps*max(busy, busy/float64(together)+wait) + stepWait)
}

// resident is how many blocks a multiprocessor holds.
func (p *product) resident(q parameters) int64 {
	threads := q.tall * q.wide
	registers := threads * (40 + q.rows*q.columns*p.bytes/4)
	return max(1, min(int64(p.gpu.MultiprocessorThreads)/threads, int64(p.gpu.MultiprocessorRegisters)/registers,
		p.gpu.MultiprocessorSharedBytes/max(1, p.sharedBytes(q))))
}
