package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// tileTile is the sketch of products without tensor cores. A block computes a tile of the results. Each thread holds
// a part of it in registers, and operands go through shared memory.
type tileTile struct{ *Product }

// tileParameters are the sketch's parameters.
type tileParameters struct {
	// tall and wide are the threads of a block along rows and columns, rows and columns the results of each.
	tall, wide, rows, columns int64
	// depth is the number of terms fetched per step.
	depth int64
	// unroll is the number of unrolled terms.
	unroll int64
	// stages is the depth of the pipeline: the number of steps whose operands are in shared memory or in flight. 1
	// means only the current step.
	stages int64
	// vector is the number of neighbours that a thread fetches at once.
	vector int64
	// parts is the number of parts of a sum, computed by blocks of their own.
	parts int64
	// scheduler assigns tiles to blocks.
	scheduler TileScheduler
}

// NewTile returns the schedules of a unit with a reduction g, or nil if no operand is shared by several results, or
// the smallest tile exceeds a block's resources.
func NewTile(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) searchspace.Family {
	p := NewProduct(s, g, u, gpu)
	if p == nil {
		return nil
	}
	t := &tileTile{p}
	fixed, open := tileParameters{}, t.open()
	for _, k := range open { // knobs without a choice
		*k.Field(&fixed) = k.Values[0]
	}
	if !t.fits(fixed) {
		return nil
	}
	return &searchspace.Sketch[tileParameters]{Open: searchspace.WithChoices(open), Fixed: fixed,
		Variants: []searchspace.Variant[tileParameters]{{By: searchspace.Direct, Structure: t}}}
}

// fits reports whether any tile with the fewest results per thread is legal.
func (p *tileTile) fits(smallest tileParameters) bool {
	for _, tall := range []int64{1, 2, 4, 8, 16, 32} {
		for _, wide := range []int64{4, 8, 16, 32} {
			q := smallest
			q.tall, q.wide = min(tall, p.Extents[p.Rows]), min(wide, p.Extents[p.Columns])
			if p.Legal(q) == nil {
				return true
			}
		}
	}
	return false
}

// open returns the knobs.
func (p *tileTile) open() []searchspace.Parameter[tileParameters] {
	type q = tileParameters
	rows, columns, steps := p.Extents[p.Rows], p.Extents[p.Columns], p.Reduce[p.Step].Extent
	knobs := []searchspace.Parameter[q]{
		sketch.Knob("tall", func(p *q) *int64 { return &p.tall }, sketch.AtMost(rows, 1, 2, 4, 8, 16, 32)...),
		sketch.Knob("wide", func(p *q) *int64 { return &p.wide }, sketch.AtMost(columns, 4, 8, 16, 32, 64)...),
		sketch.Knob("rows", func(p *q) *int64 { return &p.rows }, sketch.AtMost(rows, 1, 2, 4, 8, 16)...),
		sketch.Knob("columns", func(p *q) *int64 { return &p.columns }, p.ofGroups(sketch.AtMost(columns, 1, 2, 4, 8, 16))...),
		sketch.Knob("depth", func(p *q) *int64 { return &p.depth }, sketch.AtMost(steps, 4, 8, 16, 32)...),
		sketch.Unrolling(sketch.Knob("unroll", func(p *q) *int64 { return &p.unroll }, sketch.AtMost(steps, 1, 4, 8)...)),
		sketch.Knob("stages", func(p *q) *int64 { return &p.stages }, sketch.AtMost(p.MaxStages(4), 1, 2, 3, 4)...),
		sketch.Knob("vector", func(p *q) *int64 { return &p.vector }, 1, 4),
		sketch.Knob("parts", func(p *q) *int64 { return &p.parts }, p.Divisions(tileMinTerms)...),
	}
	return append(knobs, TileSchedulerKnobs(p.Product, Box{Rows: 8, Columns: 32}, func(p *q) *TileScheduler { return &p.scheduler })...)
}

// ofGroups returns numbers of columns, including that of a group if a thread can hold all of it.
func (p *tileTile) ofGroups(columns []int64) []int64 {
	if p.Group > 1 && p.Group <= 16 && p.Group < p.Extents[p.Columns] && !slices.Contains(columns, p.Group) {
		columns = append(columns, p.Group)
		slices.Sort(columns)
	}
	return columns
}

// tileMinTerms is the minimum number of terms of a part of a sum.
const tileMinTerms = 8

// box returns the box that a block computes.
func (q tileParameters) box() Box {
	return Box{Rows: q.tall * q.rows, Columns: q.wide * q.columns, Depth: q.depth, Parts: q.parts}
}

// fetching returns how a block fetches.
func (q tileParameters) fetching() Fetching {
	return Fetching{Threads: q.tall * q.wide, Vector: q.vector, Stages: q.stages, Skewed: true}
}

// tileRegisters limits a thread's results, so that operands and addresses have room.
const tileRegisters = 160

// Reconciled implements searchspace.Reconciler. It makes the tile scheduler legal.
func (p *tileTile) Reconciled(q tileParameters) tileParameters {
	q.scheduler = q.scheduler.Reconciled(p.Product, q.box(), p.resident(q))
	return q
}

// Legal implements searchspace.Structure.
func (p *tileTile) Legal(q tileParameters) error {
	threads := q.tall * q.wide
	switch {
	case threads > int64(p.GPU.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", threads)
	case threads < int64(p.GPU.WarpThreads) && threads < p.Extents[p.Rows]*p.Extents[p.Columns]/4:
		return fmt.Errorf("space: %d threads are fewer than a warp", threads)
	case q.rows*q.columns*p.Bytes*int64(1+len(p.Unit.Also)) > 4*tileRegisters:
		return fmt.Errorf("space: a thread keeps %dx%d results, more than registers hold", q.rows, q.columns)
	case !p.RegistersSuffice(threads, q.rows*q.columns*p.Bytes/4):
		return fmt.Errorf("space: %d threads with %dx%d results are more than the registers of a multiprocessor", threads, q.rows, q.columns)
	case p.SharedBytes(q.box(), q.fetching()) > p.GPU.BlockSharedBytes:
		return fmt.Errorf("space: a block takes %d bytes of shared memory of %d", p.SharedBytes(q.box(), q.fetching()), p.GPU.BlockSharedBytes)
	case q.unroll*q.rows*q.columns > 1024:
		return fmt.Errorf("space: %d results for %d steps are too much code", q.rows*q.columns, q.unroll)
	}
	return q.scheduler.Legal(p.Product, q.box(), p.resident(q))
}
