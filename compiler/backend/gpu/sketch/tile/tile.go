package tile

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// product is the sketch. Of the results' axes, columns is the last one that is longer than one, and rows the longest
// before it: both are tiled. The others are the blocks'.
type product struct {
	unit          nest.Unit
	gpu           *target.GPU
	extents       []int64
	rows, columns int
	// step is the reduction axis that is cut, by its place among the reduction's.
	step   int
	reduce []*expr.Var
	axes   []*expr.Var
	// operands are what a tile reads again and again.
	operands []operand
	bytes    int64
}

// operand is a tensor that the reduction reads.
type operand struct {
	load *expr.Load
	// feed is the stage that computes it where only the reduction reads that; -1 for all others.
	feed int
	// copied is set where asynchronous copies can bring it.
	copied bool
}

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
}

// New is the schedules of a unit with a reduction, g; nil where no operand is read by several results, so that there
// is nothing to share.
func New(s *schedule.Schedule, g *schedule.Stage, u nest.Unit, gpu *target.GPU) space.Family {
	if g.Combiner == expr.None || len(g.Axes) < 2 || len(g.Reduce) == 0 {
		return nil
	}
	p := &product{unit: u, gpu: gpu, extents: g.Tensor.Shape, rows: -1, columns: -1, reduce: g.Reduce, axes: g.Axes, bytes: g.Tensor.DType.Bytes()}
	for k, e := range p.extents {
		if e > 1 {
			p.columns = k
		}
	}
	for k := range max(p.columns, 0) {
		if p.extents[k] > 1 && (p.rows < 0 || p.extents[k] >= p.extents[p.rows]) {
			p.rows = k
		}
	}
	if p.rows < 0 {
		return nil
	}
	for k, r := range g.Reduce {
		if r.Extent >= g.Reduce[p.step].Extent {
			p.step = k
		}
	}
	if !p.findOperands(s, g) {
		return nil
	}
	return &space.Sketch[parameters]{Open: space.Worth(p.open()), Fixed: parameters{tall: 1, wide: 1, rows: 1, columns: 1, depth: 1, unroll: 1, stages: 1},
		Variants: []space.Variant[parameters]{{By: space.Direct, Structure: p}}}
}

// findOperands finds what a tile shares; false when it shares nothing. A tensor that is read in two ways is read where
// it lies.
func (p *product) findOperands(s *schedule.Schedule, g *schedule.Stage) bool {
	reads := map[*expr.Tensor]int{}
	for _, l := range expr.Loads(g.Body) {
		reads[l.Tensor]++
	}
	for _, l := range expr.Loads(g.Body) {
		if reads[l.Tensor] == 1 && p.shared(l) && p.boxed(l) {
			p.operands = append(p.operands, p.newOperand(s, l))
		}
	}
	return len(p.operands) > 0
}

func (p *product) newOperand(s *schedule.Schedule, l *expr.Load) operand {
	o := operand{load: l, feed: -1, copied: l.Tensor.DType.Bytes() >= 4}
	if f := s.Producer(l.Tensor); f != nil && slices.Contains(p.unit.Feeds, f.ID) {
		_, _, whole := f.Copy()
		o.feed, o.copied = f.ID, o.copied && whole
	}
	return o
}

// shared reports whether several results of a tile read the same elements.
func (p *product) shared(l *expr.Load) bool {
	for _, axis := range []int{p.rows, p.columns} {
		used := false
		for _, x := range l.Index {
			used = used || expr.Uses(x, p.axes[axis])
			if expr.Uses(x, p.axes[axis]) && nest.UsesAny(x, p.reduce) {
				return true // windows that overlap
			}
		}
		if !used {
			return true
		}
	}
	return false
}

// boxed reports whether the elements that a tile reads are a box, so that its size is known.
func (p *product) boxed(l *expr.Load) bool {
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			if _, ok := t.Atom.(*expr.Var); !ok {
				return false
			}
		}
	}
	return true
}

// open are the knobs.
func (p *product) open() []space.Parameter[parameters] {
	type q = parameters
	rows, columns, steps := p.extents[p.rows], p.extents[p.columns], p.reduce[p.step].Extent
	return []space.Parameter[q]{
		nest.Knob("tall", func(p *q) *int64 { return &p.tall }, nest.AtMost(rows, 1, 2, 4, 8, 16, 32)...),
		nest.Knob("wide", func(p *q) *int64 { return &p.wide }, nest.AtMost(columns, 4, 8, 16, 32, 64)...),
		nest.Knob("rows", func(p *q) *int64 { return &p.rows }, nest.AtMost(rows, 1, 2, 4, 8, 16)...),
		nest.Knob("columns", func(p *q) *int64 { return &p.columns }, nest.AtMost(columns, 1, 2, 4, 8, 16)...),
		nest.Knob("depth", func(p *q) *int64 { return &p.depth }, nest.AtMost(steps, 4, 8, 16, 32)...),
		nest.Unrolling(nest.Knob("unroll", func(p *q) *int64 { return &p.unroll }, nest.AtMost(steps, 1, 4, 8)...)),
		nest.Knob("stages", func(p *q) *int64 { return &p.stages }, nest.AtMost(p.mostStages(), 1, 2, 3, 4)...),
	}
}

// mostStages is for how many steps operands can be fetched ahead: for one where an operand is not just copied.
func (p *product) mostStages() int64 {
	for _, o := range p.operands {
		if !o.copied {
			return 1
		}
	}
	return 4
}

// ranges is how many values each axis takes while a block computes one step.
func (p *product) ranges(q parameters) map[*expr.Var]int64 {
	r := map[*expr.Var]int64{}
	for k, v := range p.axes {
		switch k {
		case p.rows:
			r[v] = min(v.Extent, q.tall*q.rows)
		case p.columns:
			r[v] = min(v.Extent, q.wide*q.columns)
		default:
			r[v] = 1
		}
	}
	for k, v := range p.reduce {
		r[v] = v.Extent
		if k == p.step {
			r[v] = min(v.Extent, q.depth)
		}
	}
	return r
}

// elements is how many of an operand a block reads in a step.
func (o operand) elements(ranges map[*expr.Var]int64) int64 {
	n := int64(1)
	for d, x := range o.load.Index {
		extent := int64(1)
		for _, t := range expr.Linearize(x).Terms {
			coef := max(t.Coef, -t.Coef)
			extent += coef * (ranges[t.Atom.(*expr.Var)] - 1)
		}
		n *= min(extent, o.load.Tensor.Shape[d])
	}
	return n
}

// sharedBytes is the shared memory of a block at most. Tiles at the end of an axis that they do not divide have code,
// and arrays, of their own, and so has the last step.
func (p *product) sharedBytes(q parameters) (bytes int64) {
	ranges := p.ranges(q)
	for _, o := range p.operands {
		bytes += (o.elements(ranges)*o.load.Tensor.DType.Bytes() + 15) / 16 * 16
	}
	steps := q.stages
	if p.reduce[p.step].Extent%q.depth != 0 {
		steps++
	}
	for _, tile := range []struct{ axis, size int64 }{{int64(p.rows), q.tall * q.rows}, {int64(p.columns), q.wide * q.columns}} {
		if extent := p.extents[tile.axis]; extent > tile.size && extent%tile.size != 0 {
			steps *= 2
		}
	}
	return bytes * steps
}

// tileRegisters bounds what a thread keeps of the results, so that operands and addresses have room.
const tileRegisters = 160

// Legal implements space.Structure.
func (p *product) Legal(q parameters) error {
	threads := q.tall * q.wide
	switch {
	case threads > int64(p.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", threads)
	case threads < int64(p.gpu.WarpThreads) && threads < p.extents[p.rows]*p.extents[p.columns]/4:
		return fmt.Errorf("space: %d threads are less than a warp", threads)
	case q.rows*q.columns*p.bytes*int64(1+len(p.unit.Also)) > 4*tileRegisters:
		return fmt.Errorf("space: a thread keeps %dx%d results, more than registers hold", q.rows, q.columns)
	case p.sharedBytes(q) > p.gpu.BlockSharedBytes:
		return fmt.Errorf("space: a block takes %d bytes of shared memory of %d", p.sharedBytes(q), p.gpu.BlockSharedBytes)
	case q.unroll*q.rows*q.columns > 1024:
		return fmt.Errorf("space: %d results for %d steps are too much code", q.rows*q.columns, q.unroll)
	}
	return nil
}
