package sketch

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rowwiseSketch is the sketch of stages that a block of threads computes row by row: softmax, normalisation,
// reductions. A block computes some rows, stage after stage. The threads of a row each sum the elements at a stride
// of their number, and combine the partial results by warp shuffles. If a row has several warps, one thread adds up
// their results. Intermediate results are in shared memory. For a single row, the loops over blocks and rows have one
// iteration.
type rowwiseSketch struct {
	*sketch.Rows
	gpu *target.GPU
	// side is the number of adjacent rows along the last of the shared axes, if any.
	side int64
}

// rowwiseParameters are the sketch's parameters.
type rowwiseParameters struct {
	// threads is the number of threads per row, rows the number of rows per block.
	threads, rows int64
}

// NewRowwise returns the schedules of a workload, or nil if it has no rows, or contiguous rows that each suit one
// thread.
func NewRowwise(w *expr.Workload, g *target.GPU) *sketch.Whole {
	m := sketch.MatchRows(w)
	if m == nil || m.Across || m.Length < rowwiseShortest {
		return nil
	}
	s, all := &rowwiseSketch{m, g, 1}, schedule.New(w).Stages
	if len(m.Shared) > 0 {
		s.side = all[m.Out].Axes[m.Shared[len(m.Shared)-1]].Extent
	} else if !single(m, all) {
		return nil
	}
	if s.sharedBytes(rowwiseParameters{rows: 1}) > g.BlockSharedBytes {
		return nil
	}
	limit := min(int64(g.BlockThreads), sketch.CeilDiv(m.Length, warpThreads)*warpThreads)
	family := &searchspace.Sketch[rowwiseParameters]{
		Open: searchspace.WithChoices([]searchspace.Parameter[rowwiseParameters]{
			sketch.Knob("threads", func(p *rowwiseParameters) *int64 { return &p.threads }, sketch.AtMost(limit, 4, 8, 16, 32, 64, 128, 256, 512, 1024)...),
			sketch.Knob("rows", func(p *rowwiseParameters) *int64 { return &p.rows }, sketch.AtMost(s.side, 1, 2, 4, 8, 16, 32)...),
		}),
		Fixed:    rowwiseParameters{threads: warpThreads, rows: 1},
		Variants: []searchspace.Variant[rowwiseParameters]{{By: searchspace.Direct, Structure: s}},
	}
	return &sketch.Whole{Out: m.Out, Inline: m.Inline, Family: family}
}

// single reports whether stages without shared axes have a single row in common. A sum alone only needs its terms,
// which several blocks can share.
func single(m *sketch.Rows, all []*schedule.Stage) bool {
	one := func(stage int) bool { return array.Elements(all[stage].Tensor.Shape) == 1 }
	for reduction := range m.Contiguous {
		if !one(reduction) {
			return false
		}
	}
	return len(m.Contiguous) > 1 || !one(m.Out)
}

// rowwiseShortest is the minimum number of a row's elements that several threads share.
const rowwiseShortest = 8

// sharedBytes returns an upper bound of a block's shared memory: its rows of each stage, and partial results of
// warps. The remainder of rows has code and arrays of its own.
func (s *rowwiseSketch) sharedBytes(p rowwiseParameters) int64 {
	bytes := p.rows * (int64(len(s.Stages)+1)*(s.Length+16)*s.Widest + 2*max(warpThreads, p.threads)*s.Widest)
	if s.side%p.rows != 0 {
		bytes *= 2
	}
	return bytes
}

// Legal implements searchspace.Structure.
func (s *rowwiseSketch) Legal(p rowwiseParameters) error {
	switch {
	case p.threads*p.rows > int64(s.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", p.threads*p.rows)
	case p.rows > 1 && len(s.Shared) > 1 && s.side%p.rows != 0:
		return fmt.Errorf("space: blocks of %d rows do not divide %d rows", p.rows, s.side)
	case s.sharedBytes(p) > s.gpu.BlockSharedBytes:
		return fmt.Errorf("space: %d rows take more shared memory than a block has", p.rows)
	}
	return nil
}

// Waiting times in cycles: a round of loads, and a barrier of the block.
const (
	roundWait          = 30.0
	rowwiseBarrierWait = 40.0
)

// Cost implements searchspace.Structure. It adds rounds over the row for each load, shuffles of partial results and
// barriers between stages, for the rows that a multiprocessor computes in sequence.
func (s *rowwiseSketch) Cost(p rowwiseParameters) float64 {
	const launch = 500.0
	rounds := float64(sketch.CeilDiv(s.Length, p.threads))
	threads := float64(max(warpThreads, p.threads*p.rows))
	work := rounds * float64(s.Loads) * threads / cost.Lanes
	wait := rounds*roundWait + float64(1+len(s.Stages))*rowwiseBarrierWait
	within := min(p.threads, warpThreads)
	exchanges := math.Log2(float64(within)) * shuffleWait
	if p.threads > warpThreads {
		exchanges += rowwiseBarrierWait + float64(p.threads/warpThreads)*roundWait
	}
	if within*p.rows%warpThreads != 0 || within&(within-1) != 0 { // partial results go through shared memory
		exchanges = rowwiseBarrierWait + float64(within)*roundWait
	}
	if p.threads < warpThreads { // rows that a warp reads together are not contiguous
		work *= math.Sqrt(warpThreads / float64(p.threads))
	}
	wait += float64(len(s.Contiguous)) * exchanges
	blocks := sketch.CeilDiv(s.Count, p.rows)
	resident := max(1, min(int64(s.gpu.MultiprocessorThreads)/int64(threads), 32, s.gpu.MultiprocessorSharedBytes/s.sharedBytes(p)))
	together, waves := cost.Occupy(s.gpu, blocks, resident)
	memory := float64(s.Length*s.Widest*p.rows) * together / cost.GlobalBytes
	return launch + waves*(max(work*together, memory)+wait)
}

// Apply implements searchspace.Structure.
func (s *rowwiseSketch) Apply(sch *schedule.Schedule, p rowwiseParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: sch}
	partials := s.combined(b, s.Out, p)
	shared := s.rowLoops(b, s.Out, s.Out)
	b.MoveFirst(s.Out, shared...)
	block, row := b.Fuse(s.Out, shared), -1
	if p.rows > 1 {
		block, row = b.Split(s.Out, block, p.rows, schedule.Peel)
	}
	s.nestOf(b, s.Out, []int{block}, row, p)
	b.Do(sch.Bind(s.Out, block, schedule.BlockLevel))
	s.inRows(b, partials, block)
	for _, id := range slices.Backward(s.Stages) {
		partials := s.combined(b, id, p)
		dims := s.rowLoops(b, id, id)
		s.nestOf(b, id, dims[:len(dims)-1], dims[len(dims)-1], p)
		s.inRows(b, append([]int{id}, partials...), block)
	}
	return nil
}

// inRows computes stages, consumers first, for the rows of a block.
func (s *rowwiseSketch) inRows(b *sketch.Builder, stages []int, block int) {
	for _, id := range stages {
		b.ComputeAt(id, s.Out, block)
		b.Do(b.S.SetScope(id, schedule.Shared))
	}
}

// nestOf distributes a stage's rows over threads: adjacent elements of a map, or a result of a reduction. row is the
// iterator over the rows of a block, -1 for a single one, and outer holds the iterators around it.
func (s *rowwiseSketch) nestOf(b *sketch.Builder, id int, outer []int, row int, p rowwiseParameters) {
	g := b.S.Stages[id]
	if g.Combiner != expr.None {
		if row >= 0 {
			b.MoveFirst(id, append(slices.Clone(outer), row)...)
			b.Mark(func(stage, iter int) error { return b.S.Bind(stage, iter, schedule.ThreadLevel) }, id, row)
		}
		return
	}
	var own []int
	for _, it := range g.Leaves {
		if it.ID != row && !slices.Contains(outer, it.ID) {
			own = append(own, it.ID)
		}
	}
	thread := row
	if len(own) > 0 {
		b.MoveFirst(id, slices.Concat(outer, own)...)
		round, lane := b.Split(id, b.Fuse(id, own), p.threads, schedule.Peel)
		thread = lane
		if row >= 0 {
			b.Do(b.S.Reorder(id, append(slices.Clone(outer), round, row, lane)...))
			thread = b.Fuse(id, []int{row, lane})
		}
	}
	if thread >= 0 {
		b.Do(b.S.Bind(id, thread, schedule.ThreadLevel))
	}
}

// combined makes a row's threads compute and combine partial results of a reduction. It returns their stages,
// consumers first.
func (s *rowwiseSketch) combined(b *sketch.Builder, id int, p rowwiseParameters) (partials []int) {
	if b.S.Stages[id].Combiner == expr.None {
		return nil
	}
	k := s.Contiguous[id]
	threads := rowwiseWhole(min(p.threads, b.S.Stages[id].Reduce[k].Extent))
	if threads < 2 {
		return nil
	}
	each := s.factor(b, id, k, threads, schedule.Lanes)
	if threads <= warpThreads || len(b.S.Stages[id].Reduce) != 1 {
		s.shuffle(b, id)
		return []int{each}
	}
	ofWarps := s.factor(b, id, 0, warpThreads, schedule.Pieces)
	s.shuffle(b, ofWarps)
	return []int{ofWarps, each}
}

// rowwiseWhole returns how many of the threads form whole warps, or a power of two within one.
func rowwiseWhole(threads int64) int64 {
	if threads > warpThreads {
		return threads / warpThreads * warpThreads
	}
	return 1 << (bits.Len64(uint64(threads)) - 1)
}

// shuffle makes a stage combine the registers of threads.
func (s *rowwiseSketch) shuffle(b *sketch.Builder, id int) {
	b.Do(b.S.Shuffle(id, len(b.S.Stages[id].Axes)))
}

// factor assigns a partial result of a reduction to each thread of a row, or to each warp.
func (s *rowwiseSketch) factor(b *sketch.Builder, id, k int, threads int64, part schedule.Part) int {
	partial := sketch.Get(b.S.RFactor(id, k, threads, part))
	g := b.S.Stages[partial]
	dims, lane := s.rowLoops(b, partial, id), len(g.Axes)-1
	b.MoveFirst(partial, append(slices.Clone(dims), lane)...)
	thread := b.Fuse(partial, []int{dims[len(dims)-1], lane})
	b.Do(b.S.Bind(partial, thread, schedule.ThreadLevel))
	return partial
}

// rowLoops returns the loops over rows of a stage with the axes of another one. For a single row, the loop has one
// iteration.
func (s *rowwiseSketch) rowLoops(b *sketch.Builder, stage, like int) []int {
	if len(s.Shared) == 0 {
		return []int{sketch.Get(b.S.UnitLoop(stage))}
	}
	return s.Dims[like]
}
