package tile

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/product"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// tile is the sketch.
type tile struct{ *product.Product }

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// tall and wide are the threads of a block along rows and columns, rows and columns the results of each.
	tall, wide, rows, columns int64
	// depth is how many steps of the reduction operands are fetched for at a time.
	depth int64
	// unroll is how many of them are written out.
	unroll int64
	// stages is for how many steps operands are in shared memory or under way; 1 = for the step that is computed.
	stages int64
	// vector is how many neighbours a thread fetches at once.
	vector int64
	// parts is in how many parts sums are computed, by blocks of their own.
	parts int64
	// walk is how blocks take tiles.
	walk product.Walk
}

// New is the schedules of a unit with a reduction, g; nil where no operand is read by several results, so that there
// is nothing to share, or where a block has no room for what the smallest tile reads.
func New(s *schedule.Schedule, g *schedule.Stage, u nest.Unit, gpu *target.GPU) space.Family {
	p := product.New(s, g, u, gpu)
	if p == nil {
		return nil
	}
	t := &tile{p}
	fixed, open := parameters{}, t.open()
	for _, k := range open { // what leaves no choice
		*k.Field(&fixed) = k.Values[0]
	}
	if !t.fits(fixed) {
		return nil
	}
	return &space.Sketch[parameters]{Open: space.Worth(open), Fixed: fixed,
		Variants: []space.Variant[parameters]{{By: space.Direct, Structure: t}}}
}

// fits reports whether any tile is legal, of those that have the fewest results of a thread.
func (p *tile) fits(smallest parameters) bool {
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

// open are the knobs.
func (p *tile) open() []space.Parameter[parameters] {
	type q = parameters
	rows, columns, steps := p.Extents[p.Rows], p.Extents[p.Columns], p.Reduce[p.Step].Extent
	knobs := []space.Parameter[q]{
		nest.Knob("tall", func(p *q) *int64 { return &p.tall }, nest.AtMost(rows, 1, 2, 4, 8, 16, 32)...),
		nest.Knob("wide", func(p *q) *int64 { return &p.wide }, nest.AtMost(columns, 4, 8, 16, 32, 64)...),
		nest.Knob("rows", func(p *q) *int64 { return &p.rows }, nest.AtMost(rows, 1, 2, 4, 8, 16)...),
		nest.Knob("columns", func(p *q) *int64 { return &p.columns }, p.ofGroups(nest.AtMost(columns, 1, 2, 4, 8, 16))...),
		nest.Knob("depth", func(p *q) *int64 { return &p.depth }, nest.AtMost(steps, 4, 8, 16, 32)...),
		nest.Unrolling(nest.Knob("unroll", func(p *q) *int64 { return &p.unroll }, nest.AtMost(steps, 1, 4, 8)...)),
		nest.Knob("stages", func(p *q) *int64 { return &p.stages }, nest.AtMost(p.MostStages(4), 1, 2, 3, 4)...),
		nest.Knob("vector", func(p *q) *int64 { return &p.vector }, 1, 4),
		nest.Knob("parts", func(p *q) *int64 { return &p.parts }, p.Divisions(leastTerms)...),
	}
	return append(knobs, product.Walking(p.Product, product.Box{Rows: 8, Columns: 32}, func(p *q) *product.Walk { return &p.walk })...)
}

// ofGroups are numbers of columns, with that of a group where a thread can have all of it.
func (p *tile) ofGroups(columns []int64) []int64 {
	if p.Group > 1 && p.Group <= 16 && p.Group < p.Extents[p.Columns] && !slices.Contains(columns, p.Group) {
		columns = append(columns, p.Group)
		slices.Sort(columns)
	}
	return columns
}

// leastTerms is how many terms a part of a sum has at least.
const leastTerms = 8

// box is what a block computes.
func (q parameters) box() product.Box {
	return product.Box{Rows: q.tall * q.rows, Columns: q.wide * q.columns, Depth: q.depth, Parts: q.parts}
}

// fetching is how a block fetches.
func (q parameters) fetching() product.Fetching {
	return product.Fetching{Threads: q.tall * q.wide, Vector: q.vector, Stages: q.stages, Skewed: true}
}

// tileRegisters bounds what a thread keeps of the results, so that operands and addresses have room.
const tileRegisters = 160

// Reconciled implements space.Reconciler: blocks walk as their tiles allow.
func (p *tile) Reconciled(q parameters) parameters {
	q.walk = q.walk.Reconciled(p.Product, q.box(), p.resident(q))
	return q
}

// Legal implements space.Structure.
func (p *tile) Legal(q parameters) error {
	threads := q.tall * q.wide
	switch {
	case threads > int64(p.GPU.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", threads)
	case threads < int64(p.GPU.WarpThreads) && threads < p.Extents[p.Rows]*p.Extents[p.Columns]/4:
		return fmt.Errorf("space: %d threads are less than a warp", threads)
	case q.rows*q.columns*p.Bytes*int64(1+len(p.Unit.Also)) > 4*tileRegisters:
		return fmt.Errorf("space: a thread keeps %dx%d results, more than registers hold", q.rows, q.columns)
	case !p.RegistersSuffice(threads, q.rows*q.columns*p.Bytes/4):
		return fmt.Errorf("space: %d threads with %dx%d results are more than the registers of a multiprocessor", threads, q.rows, q.columns)
	case p.SharedBytes(q.box(), q.fetching()) > p.GPU.BlockSharedBytes:
		return fmt.Errorf("space: a block takes %d bytes of shared memory of %d", p.SharedBytes(q.box(), q.fetching()), p.GPU.BlockSharedBytes)
	case q.unroll*q.rows*q.columns > 1024:
		return fmt.Errorf("space: %d results for %d steps are too much code", q.rows*q.columns, q.unroll)
	}
	return q.walk.Legal(p.Product, q.box(), p.resident(q))
}
