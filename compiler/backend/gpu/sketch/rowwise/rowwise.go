package rowwise

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/sketch/rows"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sketch is the structure: a block computes some rows, stage after stage. A row's threads each sum what lies as many
// elements apart as there are of them, and add up these partial results by passing them between the registers of a
// warp; of more than a warp, one thread adds up what warps have. What stages leave to the next ones lies in shared
// memory. Of a single row, blocks and results are loops of one iteration.
type sketch struct {
	*rows.Rows
	gpu *target.GPU
	// side is the rows that lie side by side: along the last of the shared axes, if there is one.
	side int64
}

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// threads is those of a row, rows those of a block.
	threads, rows int64
}

// New is the schedules of a workload; nil when it has no rows, or rows whose neighbours lie side by side, of which
// each thread has one.
func New(w *expr.Workload, g *target.GPU) *nest.Whole {
	m := rows.Match(w)
	if m == nil || m.Across || m.Length < shortest {
		return nil
	}
	s, all := &sketch{m, g, 1}, schedule.New(w).Stages
	if len(m.Shared) > 0 {
		s.side = all[m.Out].Axes[m.Shared[len(m.Shared)-1]].Extent
	} else if !single(m, all) {
		return nil
	}
	if s.sharedBytes(parameters{rows: 1}) > g.BlockSharedBytes {
		return nil
	}
	most := min(int64(g.BlockThreads), nest.CeilDiv(m.Length, warp)*warp)
	family := &space.Sketch[parameters]{
		Open: space.Worth([]space.Parameter[parameters]{
			nest.Knob("threads", func(p *parameters) *int64 { return &p.threads }, nest.AtMost(most, 4, 8, 16, 32, 64, 128, 256, 512, 1024)...),
			nest.Knob("rows", func(p *parameters) *int64 { return &p.rows }, nest.AtMost(s.side, 1, 2, 4, 8, 16, 32)...),
		}),
		Fixed:    parameters{threads: warp, rows: 1},
		Variants: []space.Variant[parameters]{{By: space.Direct, Structure: s}},
	}
	return &nest.Whole{Out: m.Out, Inline: m.Inline, Family: family}
}

// single reports whether stages that share no axis have a single row, which they need in common. A sum alone needs
// nothing but its terms, which more than a block can share.
func single(m *rows.Rows, all []*schedule.Stage) bool {
	one := func(stage int) bool { return array.Elements(all[stage].Tensor.Shape) == 1 }
	for reduction := range m.Contiguous {
		if !one(reduction) {
			return false
		}
	}
	return len(m.Contiguous) > 1 || !one(m.Out)
}

const (
	// shortest is the least elements of a row that several threads share.
	shortest = 8
	// warp is the threads that pass values between their registers.
	warp = 32
)

// sharedBytes is at most what a block keeps: its rows of each stage, and partial results of warps. Rows that are left
// over have code, and arrays, of their own.
func (s *sketch) sharedBytes(p parameters) int64 {
	bytes := p.rows * (int64(len(s.Stages)+1)*(s.Length+16)*s.Widest + 2*max(warp, p.threads)*s.Widest)
	if s.side%p.rows != 0 {
		bytes *= 2
	}
	return bytes
}

// Legal implements space.Structure.
func (s *sketch) Legal(p parameters) error {
	switch {
	case p.threads*p.rows > int64(s.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", p.threads*p.rows)
	case p.rows > 1 && len(s.Shared) > 1 && s.side%p.rows != 0:
		return fmt.Errorf("space: %d rows of %d lie in several", p.rows, s.side)
	case s.sharedBytes(p) > s.gpu.BlockSharedBytes:
		return fmt.Errorf("space: %d rows take more shared memory than a block has", p.rows)
	}
	return nil
}

// What threads wait for, in cycles: a round of loads, an exchange of registers, and the others of the block.
const (
	roundWait   = 30.0
	shuffleWait = 25.0
	barrierWait = 40.0
)

// Cost implements space.Structure: rounds over the row for each load, exchanges of partial results and barriers
// between stages, for as many rows as multiprocessors compute after one another.
func (s *sketch) Cost(p parameters) float64 {
	const lanes, bytesPerCycle, launch = 128.0, 16.0, 500.0
	rounds := float64(nest.CeilDiv(s.Length, p.threads))
	threads := float64(max(warp, p.threads*p.rows))
	work := rounds * float64(s.Loads) * threads / lanes
	wait := rounds*roundWait + float64(1+len(s.Stages))*barrierWait
	within := min(p.threads, warp)
	exchanges := math.Log2(float64(within)) * shuffleWait
	if p.threads > warp {
		exchanges += barrierWait + float64(p.threads/warp)*roundWait
	}
	if within*p.rows%warp != 0 || within&(within-1) != 0 { // partial results go through shared memory
		exchanges = barrierWait + float64(within)*roundWait
	}
	if p.threads < warp { // rows that a warp reads together lie apart
		work *= math.Sqrt(warp / float64(p.threads))
	}
	wait += float64(len(s.Contiguous)) * exchanges
	blocks := nest.CeilDiv(s.Count, p.rows)
	resident := max(1, min(int64(s.gpu.MultiprocessorThreads)/int64(threads), 32, s.gpu.MultiprocessorSharedBytes/s.sharedBytes(p)))
	together := min(resident, nest.CeilDiv(blocks, int64(s.gpu.Multiprocessors)))
	memory := float64(s.Length*s.Widest*p.rows) * float64(together) / bytesPerCycle
	waves := float64(nest.CeilDiv(blocks, resident*int64(s.gpu.Multiprocessors)))
	return launch + waves*(max(work*float64(together), memory)+wait)
}

// Apply implements space.Structure.
func (s *sketch) Apply(sch *schedule.Schedule, p parameters) error {
	b := &nest.Builder{S: sch}
	partials := s.combined(b, s.Out, p)
	if b.Err != nil {
		return b.Err
	}
	shared := s.rowLoops(b, s.Out, s.Out)
	if b.Err != nil {
		return b.Err
	}
	b.Do(sch.Reorder(s.Out, leavesFirst(sch.Stages[s.Out], shared)...))
	block, row := b.Fuse(s.Out, shared), -1
	if p.rows > 1 {
		block, row = b.Split(s.Out, block, p.rows, schedule.Peel)
	}
	s.nestOf(b, s.Out, []int{block}, row, p)
	if b.Err == nil {
		b.Do(sch.Bind(s.Out, block, schedule.BlockLevel))
	}
	s.inRows(b, partials, block)
	for _, id := range slices.Backward(s.Stages) {
		if b.Err != nil {
			break
		}
		partials := s.combined(b, id, p)
		dims := s.rowLoops(b, id, id)
		s.nestOf(b, id, dims[:len(dims)-1], dims[len(dims)-1], p)
		s.inRows(b, append([]int{id}, partials...), block)
	}
	return b.Err
}

// inRows computes stages, consumers first, for the rows of a block.
func (s *sketch) inRows(b *nest.Builder, stages []int, block int) {
	for _, id := range stages {
		b.ComputeAt(id, s.Out, block)
		if b.Err == nil {
			b.Do(b.S.SetScope(id, schedule.Shared))
		}
	}
}

// nestOf gives the threads their part of a stage's rows: the elements of a map side by side, or a result of a
// reduction. Row is the iterator over the rows of a block, -1 for a single one, and outer are those around it.
func (s *sketch) nestOf(b *nest.Builder, id int, outer []int, row int, p parameters) {
	if b.Err != nil {
		return
	}
	g := b.S.Stages[id]
	if g.Combiner != expr.None {
		if row >= 0 {
			b.Do(b.S.Reorder(id, leavesFirst(g, append(slices.Clone(outer), row))...))
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
		b.Do(b.S.Reorder(id, leavesFirst(g, slices.Concat(outer, own))...))
		round, lane := b.Split(id, b.Fuse(id, own), p.threads, schedule.Peel)
		thread = lane
		if row >= 0 && b.Err == nil {
			b.Do(b.S.Reorder(id, append(slices.Clone(outer), round, row, lane)...))
			thread = b.Fuse(id, []int{row, lane})
		}
	}
	if thread >= 0 && b.Err == nil {
		b.Do(b.S.Bind(id, thread, schedule.ThreadLevel))
	}
}

// combined has a row's threads compute partial results of a reduction, which are then combined. It returns their
// stages, consumers first.
func (s *sketch) combined(b *nest.Builder, id int, p parameters) (partials []int) {
	if b.S.Stages[id].Combiner == expr.None {
		return nil
	}
	k := s.Contiguous[id]
	threads := whole(min(p.threads, b.S.Stages[id].Reduce[k].Extent))
	if threads < 2 {
		return nil
	}
	each := s.factor(b, id, k, threads, schedule.Lanes)
	if threads <= warp || b.Err != nil || len(b.S.Stages[id].Reduce) != 1 {
		s.shuffle(b, id)
		return []int{each}
	}
	ofWarps := s.factor(b, id, 0, warp, schedule.Pieces)
	s.shuffle(b, ofWarps)
	return []int{ofWarps, each}
}

// whole is how many of so many threads are whole warps, or a part of one that can be halved again and again.
func whole(threads int64) int64 {
	if threads > warp {
		return threads / warp * warp
	}
	return 1 << (bits.Len64(uint64(threads)) - 1)
}

// shuffle has a stage combine what threads have in their registers.
func (s *sketch) shuffle(b *nest.Builder, id int) {
	if b.Err == nil {
		b.Do(b.S.Shuffle(id, len(b.S.Stages[id].Axes)))
	}
}

// factor gives each thread of a row, or each warp, a partial result of a reduction.
func (s *sketch) factor(b *nest.Builder, id, k int, threads int64, part schedule.Part) (partial int) {
	if b.Err != nil {
		return 0
	}
	partial, err := b.S.RFactor(id, k, threads, part)
	b.Do(err)
	if b.Err != nil {
		return 0
	}
	g := b.S.Stages[partial]
	dims, lane := s.rowLoops(b, partial, id), len(g.Axes)-1
	if b.Err != nil {
		return 0
	}
	b.Do(b.S.Reorder(partial, leavesFirst(g, append(slices.Clone(dims), lane))...))
	thread := b.Fuse(partial, []int{dims[len(dims)-1], lane})
	if b.Err == nil {
		b.Do(b.S.Bind(partial, thread, schedule.ThreadLevel))
	}
	return partial
}

// rowLoops are the loops of a stage over rows, which has the axes of another one: of a single row, a loop of one
// iteration.
func (s *sketch) rowLoops(b *nest.Builder, stage, like int) []int {
	if len(s.Shared) == 0 {
		return []int{b.UnitLoop(stage)}
	}
	return s.Dims[like]
}

// leavesFirst is an order of all leaves with the given ones first.
func leavesFirst(g *schedule.Stage, first []int) []int {
	order := slices.Clone(first)
	for _, it := range g.Leaves {
		if !slices.Contains(first, it.ID) {
			order = append(order, it.ID)
		}
	}
	return order
}
