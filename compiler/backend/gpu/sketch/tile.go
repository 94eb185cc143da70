// Tile is the sketch of products on a GPU without tensor cores: a block computes a tile of the results, of
// which each thread keeps a part in registers, and reads its operands through shared memory.

package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// tileTile is the sketch.
type tileTile struct{ *Product }

// tileParameters are the numbers that the sketch leaves open.
type tileParameters struct {
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
	walk Walk
}

// NewTile is the schedules of a unit with a reduction, g; nil where no operand is read by several results, so that
// there is nothing to share, or where a block has no room for what the smallest tile reads.
func NewTile(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) space.Family {
	p := NewProduct(s, g, u, gpu)
	if p == nil {
		return nil
	}
	t := &tileTile{p}
	fixed, open := tileParameters{}, t.open()
	for _, k := range open { // what leaves no choice
		*k.Field(&fixed) = k.Values[0]
	}
	if !t.fits(fixed) {
		return nil
	}
	return &space.Sketch[tileParameters]{Open: space.Worth(open), Fixed: fixed,
		Variants: []space.Variant[tileParameters]{{By: space.Direct, Structure: t}}}
}

// fits reports whether any tile is legal, of those that have the fewest results of a thread.
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

// open are the knobs.
func (p *tileTile) open() []space.Parameter[tileParameters] {
	type q = tileParameters
	rows, columns, steps := p.Extents[p.Rows], p.Extents[p.Columns], p.Reduce[p.Step].Extent
	knobs := []space.Parameter[q]{
		sketch.Knob("tall", func(p *q) *int64 { return &p.tall }, sketch.AtMost(rows, 1, 2, 4, 8, 16, 32)...),
		sketch.Knob("wide", func(p *q) *int64 { return &p.wide }, sketch.AtMost(columns, 4, 8, 16, 32, 64)...),
		sketch.Knob("rows", func(p *q) *int64 { return &p.rows }, sketch.AtMost(rows, 1, 2, 4, 8, 16)...),
		sketch.Knob("columns", func(p *q) *int64 { return &p.columns }, p.ofGroups(sketch.AtMost(columns, 1, 2, 4, 8, 16))...),
		sketch.Knob("depth", func(p *q) *int64 { return &p.depth }, sketch.AtMost(steps, 4, 8, 16, 32)...),
		sketch.Unrolling(sketch.Knob("unroll", func(p *q) *int64 { return &p.unroll }, sketch.AtMost(steps, 1, 4, 8)...)),
		sketch.Knob("stages", func(p *q) *int64 { return &p.stages }, sketch.AtMost(p.MostStages(4), 1, 2, 3, 4)...),
		sketch.Knob("vector", func(p *q) *int64 { return &p.vector }, 1, 4),
		sketch.Knob("parts", func(p *q) *int64 { return &p.parts }, p.Divisions(tileLeastTerms)...),
	}
	return append(knobs, Walking(p.Product, Box{Rows: 8, Columns: 32}, func(p *q) *Walk { return &p.walk })...)
}

// ofGroups are numbers of columns, with that of a group where a thread can have all of it.
func (p *tileTile) ofGroups(columns []int64) []int64 {
	if p.Group > 1 && p.Group <= 16 && p.Group < p.Extents[p.Columns] && !slices.Contains(columns, p.Group) {
		columns = append(columns, p.Group)
		slices.Sort(columns)
	}
	return columns
}

// tileLeastTerms is how many terms a part of a sum has at least.
const tileLeastTerms = 8

// box is what a block computes.
func (q tileParameters) box() Box {
	return Box{Rows: q.tall * q.rows, Columns: q.wide * q.columns, Depth: q.depth, Parts: q.parts}
}

// fetching is how a block fetches.
func (q tileParameters) fetching() Fetching {
	return Fetching{Threads: q.tall * q.wide, Vector: q.vector, Stages: q.stages, Skewed: true}
}

// tileRegisters bounds what a thread keeps of the results, so that operands and addresses have room.
const tileRegisters = 160

// Reconciled implements space.Reconciler: blocks walk as their tiles allow.
func (p *tileTile) Reconciled(q tileParameters) tileParameters {
	q.walk = q.walk.Reconciled(p.Product, q.box(), p.resident(q))
	return q
}

// Legal implements space.Structure.
func (p *tileTile) Legal(q tileParameters) error {
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
