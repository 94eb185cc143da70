package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Waiting times in cycles.
const (
	loadWait          = 500.0
	slicesBarrierWait = 60.0
	// addWait is the time of a thread to add up a part, or another thread's sum.
	addWait = 30.0
	// blockStart is the time of a multiprocessor to start a block.
	blockStart = 40.0
)

// Cost implements searchspace.Structure. It adds operations, memory, and the latency of a thread's loads that are not
// unrolled.
func (p *sums) Cost(q slicesParameters) float64 {
	const sector = 32
	terms := float64(sketch.CeilDiv(sketch.CeilDiv(p.extent, q.parts), q.across) * p.others)
	threads := float64(max(warpThreads, sketch.CeilDiv(q.side*q.across, warpThreads)*warpThreads))
	row := p.row()
	blocks := sketch.Product(p.extents) / row * sketch.CeilDiv(row, q.side) * q.parts
	work := terms * (1.5 + float64(p.loads)) * threads / cost.Lanes
	neighbours := q.side
	if p.along {
		neighbours = q.across
	}
	apart := max(1, float64(sector)/float64(max(1, neighbours*p.element)))
	memory := terms * float64(q.side*q.across*p.element) * apart / cost.GlobalBytes
	wait := terms/float64(min(q.unroll, int64(terms)+1))*loadWait + loadWait
	wait += p.exchange(q.across, p.along)
	resident := max(1, min(int64(p.gpu.MultiprocessorThreads)/int64(threads), 32))
	together, waves := cost.Occupy(p.gpu, blocks, resident)
	total := waves*max(max(work, memory)*together, wait) + blockStart*float64(blocks)/float64(p.gpu.Multiprocessors)
	if q.parts > 1 {
		total += cost.LaunchCycles + p.addition(q.parts) + float64(2*q.parts*sketch.Product(p.extents)*p.wide)/cost.GlobalBytes/float64(p.gpu.Multiprocessors)
	}
	return total
}

// exchange returns the time of the given number of threads to add up their sums. For few results with contiguous
// terms, warps use registers, and then one thread adds up their sums.
func (p *sums) exchange(threads int64, along bool) float64 {
	switch {
	case threads == 1:
		return 0
	case !p.few || !along || threads%warpThreads != 0 || !p.gpu.HasWarps():
		return 2*slicesBarrierWait + addWait*float64(threads)
	}
	return 2*slicesBarrierWait + shuffleWait*math.Log2(warpThreads) + addWait*float64(threads/warpThreads)
}

// addition returns the time of adding up the parts of a sum: by a thread, or by a thread per part.
func (p *sums) addition(parts int64) float64 {
	if across := p.adders(parts); across > 1 {
		return loadWait + p.exchange(across, true)
	}
	if p.few {
		return loadWait*float64(sketch.CeilDiv(parts, ahead)) + addWait*float64(parts)
	}
	return addWait * float64(parts)
}
