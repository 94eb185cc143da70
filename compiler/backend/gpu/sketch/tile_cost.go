package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Cost implements searchspace.Structure. It takes the maximum of arithmetic, shared and global memory per step, and
// adds up the waves of blocks.
func (p *tileTile) Cost(q tileParameters) float64 {
	box, f := q.box(), q.fetching()
	blocks, resident := p.Blocks(box), p.resident(q)
	l := p.Launch(q.scheduler, box, q.stages, resident)
	_, terms := p.Steps(box)
	// A tile at the end of an axis has less work.
	perStep := float64(terms*sketch.Product(p.Extents)*q.parts) / float64(blocks)
	loop := 1 + 1/float64(max(1, q.unroll))/float64(q.rows*q.columns)
	copies := float64(p.AllCopies(box, f))
	arithmetic := (perStep*loop*p.idle(q) + copies*copyOperations) / cost.Lanes
	work := max(arithmetic, p.shared(q, perStep), p.Traffic(q.scheduler, box, l))
	work = cost.Exposed(work, l.Concurrent*float64(sketch.CeilDiv(p.active(q), warpThreads)))
	// Fetches for later steps are in flight while a step is computed.
	wait := max(0, cost.Latency-float64(q.stages-1)*work) / l.Concurrent
	return p.Cycles(l, box, work, wait)
}

// idle returns the number of warp lanes per lane with results.
func (p *tileTile) idle(q tileParameters) float64 {
	active := p.active(q)
	return float64(sketch.CeilDiv(active, warpThreads)*warpThreads) / float64(active)
}

// active returns how many threads of an average block have results.
func (p *tileTile) active(q tileParameters) int64 {
	along := func(extent, threads, own int64) int64 {
		return sketch.CeilDiv(sketch.CeilDiv(extent, sketch.CeilDiv(extent, threads*own)), own)
	}
	return along(p.Extents[p.Rows], q.tall, q.rows) * along(p.Extents[p.Columns], q.wide, q.columns)
}

// shared returns the turns of the shared memory banks for the given number of multiplications. A thread's rows share
// the data of its columns, and vice versa.
func (p *tileTile) shared(q tileParameters, multiplications float64) (turns float64) {
	place := func(thread int64) (row, column int64) {
		row, column = thread/q.wide%q.tall, thread%q.wide
		if !p.interleaved(p.Rows, q.tall*q.rows) {
			row *= q.rows
		}
		if !p.interleaved(p.Columns, q.wide*q.columns) {
			column *= q.columns
		}
		return row, column
	}
	for _, o := range p.Operands {
		shares := float64(1)
		if !p.Reads(o, p.Rows) {
			shares *= float64(q.rows)
		}
		shares *= float64(p.Alike(o, q.columns))
		turns += multiplications / warpThreads / shares * float64(p.Turns(q.box(), q.fetching(), o, place))
	}
	return turns
}

// resident returns how many blocks a multiprocessor holds.
func (p *tileTile) resident(q tileParameters) int64 {
	return cost.Residents(p.GPU, q.tall*q.wide, OwnRegisters+q.rows*q.columns*p.Bytes/4, p.SharedBytes(q.box(), q.fetching()))
}
