package rowwise

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/sketch/rows"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sketch is the structure: a block for each row, whose threads compute the stages one after the other. Of a reduction
// each thread sums what lies as many elements apart as there are threads, a few threads add up these partial results,
// and the first one adds up theirs. What stages leave to the next ones lies in shared memory.
type sketch struct {
	*rows.Rows
	gpu *target.GPU
}

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// threads is those of a block.
	threads int64
}

// New is the schedules of a workload; nil when it has no rows, or rows whose neighbours lie side by side, of which
// each thread has one.
func New(w *expr.Workload, g *target.GPU) *nest.Whole {
	m := rows.Match(w)
	if m == nil || m.Across || len(m.Shared) == 0 || m.Length < int64(g.WarpThreads) {
		return nil
	}
	s := &sketch{m, g}
	if s.sharedBytes() > g.BlockSharedBytes {
		return nil
	}
	most := min(int64(g.BlockThreads), nest.CeilDiv(m.Length, 32)*32)
	family := &space.Sketch[parameters]{
		Open:     space.Worth([]space.Parameter[parameters]{nest.Knob("threads", func(p *parameters) *int64 { return &p.threads }, nest.AtMost(most, 32, 64, 128, 256, 512)...)}),
		Fixed:    parameters{threads: 32},
		Variants: []space.Variant[parameters]{{By: space.Direct, Structure: s}},
	}
	return &nest.Whole{Out: m.Out, Inline: m.Inline, Family: family}
}

// sharedBytes is at most what a block keeps: a row of each stage, and partial results.
func (s *sketch) sharedBytes() int64 {
	return int64(len(s.Stages)+1)*s.Length*s.Widest + 2*int64(s.gpu.BlockThreads)*s.Widest
}

// Legal implements space.Structure.
func (s *sketch) Legal(p parameters) error {
	if p.threads > int64(s.gpu.BlockThreads) {
		return fmt.Errorf("space: %d threads are more than a block has", p.threads)
	}
	return nil
}

// Cost implements space.Structure: rounds over the row for each load, sums of partial results and barriers between
// stages, for as many rows as multiprocessors compute after one another.
func (s *sketch) Cost(p parameters) float64 {
	const lanes, round, together, barrier = 128.0, 30.0, 30.0, 40.0
	rounds := float64(nest.CeilDiv(s.Length, p.threads))
	row := rounds*(round+float64(s.Loads)*float64(p.threads)/lanes) + float64(len(s.Contiguous))*together*float64(few+p.threads/few) +
		float64(1+len(s.Stages))*barrier
	resident := max(1, min(int64(s.gpu.MultiprocessorThreads)/p.threads, s.gpu.MultiprocessorSharedBytes/s.sharedBytes()))
	return row * float64(nest.CeilDiv(s.Count, resident*int64(s.gpu.Multiprocessors)))
}

// few is how many threads add up the partial results of all.
const few = 16

// Apply implements space.Structure.
func (s *sketch) Apply(sch *schedule.Schedule, p parameters) error {
	b := &nest.Builder{S: sch}
	partials := s.along(b, s.Out, p)
	if b.Err != nil {
		return b.Err
	}
	b.Do(sch.Reorder(s.Out, leavesFirst(sch.Stages[s.Out], s.Shared)...))
	row := b.Fuse(s.Out, s.Shared)
	if b.Err == nil {
		b.Do(sch.Bind(s.Out, row, schedule.BlockLevel))
	}
	s.inRow(b, partials, row)
	for _, id := range slices.Backward(s.Stages) {
		if b.Err == nil {
			s.inRow(b, append([]int{id}, s.along(b, id, p)...), row)
		}
	}
	return b.Err
}

// inRow computes stages, consumers first, in the row of the last stage.
func (s *sketch) inRow(b *nest.Builder, stages []int, row int) {
	for _, id := range stages {
		b.ComputeAt(id, s.Out, row)
		if b.Err == nil {
			b.Do(b.S.SetScope(id, schedule.Shared))
		}
	}
}

// along makes the nest of a stage within a row. It returns the stages of a reduction's partial results, consumers
// first.
func (s *sketch) along(b *nest.Builder, id int, p parameters) (partials []int) {
	g := b.S.Stages[id]
	if g.Combiner == expr.None {
		s.spread(b, g, p.threads)
		return nil
	}
	k := s.Contiguous[id]
	threads := min(p.threads, g.Reduce[k].Extent)
	if threads < 2 {
		return nil
	}
	each := s.factor(b, id, k, threads)
	if b.Err != nil || threads <= few {
		return []int{each}
	}
	return []int{s.factor(b, id, 0, few), each}
}

// factor gives each of so many threads a partial result of a reduction.
func (s *sketch) factor(b *nest.Builder, id, k int, threads int64) (partial int) {
	partial, err := b.S.RFactor(id, k, threads, schedule.Lanes)
	b.Do(err)
	if b.Err != nil {
		return 0
	}
	g := b.S.Stages[partial]
	b.Do(b.S.Reorder(partial, leavesFirst(g, []int{len(g.Axes) - 1})...))
	if b.Err == nil {
		b.Do(b.S.Bind(partial, len(g.Axes)-1, schedule.ThreadLevel))
	}
	return partial
}

// spread divides a map's part of a row among the threads, side by side.
func (s *sketch) spread(b *nest.Builder, g *schedule.Stage, threads int64) {
	var own []int
	for k := range g.Axes {
		if !slices.Contains(s.Dims[g.ID], k) {
			own = append(own, k)
		}
	}
	if len(own) == 0 || b.Err != nil {
		return
	}
	b.Do(b.S.Reorder(g.ID, slices.Concat(s.Dims[g.ID], own)...))
	_, thread := b.Split(g.ID, b.Fuse(g.ID, own), threads, schedule.Peel)
	if b.Err == nil {
		b.Do(b.S.Bind(g.ID, thread, schedule.ThreadLevel))
	}
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
