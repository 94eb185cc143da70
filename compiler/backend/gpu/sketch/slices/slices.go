package slices

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sums is the sketch. Where the results' terms lie side by side, neighbouring threads add up terms of one result and
// exchange what they have; elsewhere neighbouring threads have neighbouring results, and their partial sums go through
// shared memory.
type sums struct {
	unit nest.Unit
	gpu  *target.GPU
	// extents are those of the results, last is the last axis that is longer than one. Step is the reduction axis that
	// is cut, by its place among the reduction's, and extent its own.
	extents []int64
	last    int
	step    int
	extent  int64
	// others is how many terms there are for each value of that axis, loads what each takes, and element the bytes
	// of most of what is read.
	others, loads, element int64
	// wide is the bytes of a result.
	wide int64
	// along is set where terms lie side by side.
	along bool
}

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// side is the results of a block, across the threads of each.
	side, across int64
	// parts is in how many parts sums are computed, by blocks of their own.
	parts int64
	// unroll is how many terms are written out.
	unroll int64
}

const (
	// shortest is the least terms of a sum that several threads share.
	shortest = 32
	warp     = 32
	// leastTerms is how many a part of a sum has at least.
	leastTerms = 16
)

// New is the schedules of a unit with a reduction, g; nil where sums are short.
func New(s *schedule.Schedule, g *schedule.Stage, u nest.Unit, gpu *target.GPU) space.Family {
	if len(g.Axes) == 0 || len(g.Reduce) == 0 {
		return nil
	}
	p := &sums{unit: u, gpu: gpu, extents: g.Tensor.Shape, others: 1, wide: g.Tensor.DType.Bytes()}
	for k, e := range p.extents {
		if e > 1 {
			p.last = k
		}
	}
	p.findStep(g)
	if p.extent*p.others < shortest || p.extent < 4 {
		return nil
	}
	return &space.Sketch[parameters]{
		Open: space.Worth([]space.Parameter[parameters]{
			nest.Knob("side", func(p *parameters) *int64 { return &p.side }, nest.AtMost(p.extents[p.last], 1, 2, 4, 8, 16, 32, 64, 128)...),
			nest.Knob("across", func(p *parameters) *int64 { return &p.across }, nest.AtMost(p.extent, 1, 2, 4, 8, 16, 32)...),
			nest.Knob("parts", func(p *parameters) *int64 { return &p.parts }, p.divisions()...),
			nest.Unrolling(nest.Knob("unroll", func(p *parameters) *int64 { return &p.unroll }, 1, 4, 8)),
		}),
		Fixed:    parameters{side: 1, across: 1, parts: 1, unroll: 1},
		Variants: []space.Variant[parameters]{{By: space.Direct, Structure: p}},
	}
}

// findStep finds the axis to cut: that along which most of what is read lies side by side, or else the longest.
func (p *sums) findStep(g *schedule.Stage) {
	var heaviest *expr.Load
	for _, l := range expr.Loads(g.Body) {
		p.loads++
		if heaviest == nil || array.Elements(l.Tensor.Shape) > array.Elements(heaviest.Tensor.Shape) {
			heaviest = l
		}
	}
	for k, v := range g.Reduce {
		if v.Extent >= g.Reduce[p.step].Extent {
			p.step = k
		}
	}
	for k, v := range g.Reduce {
		if heaviest != nil && v.Extent > 1 && nest.Adjacent(heaviest, v) {
			p.step, p.along = k, true
		}
	}
	if heaviest != nil {
		p.element = heaviest.DType().Bytes()
	}
	p.extent = g.Reduce[p.step].Extent
	for k, v := range g.Reduce {
		if k != p.step {
			p.others *= v.Extent
		}
	}
}

// divisions are the numbers of parts that sums can be divided into.
func (p *sums) divisions() []int64 {
	list := []int64{1}
	for _, n := range []int64{2, 4, 8, 16, 32, 64} {
		if p.extent%n == 0 && p.extent/n >= leastTerms {
			list = append(list, n)
		}
	}
	return list
}

// Legal implements space.Structure.
func (p *sums) Legal(q parameters) error {
	switch {
	case q.side*q.across > int64(p.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", q.side*q.across)
	case q.across > p.extent/q.parts:
		return fmt.Errorf("space: %d threads are more than terms", q.across)
	}
	return nil
}

// What threads wait for, in cycles.
const (
	loadWait    = 500.0
	barrierWait = 60.0
	// addWait is what a thread takes to add up a part.
	addWait = 30.0
	// blockStart is what beginning a block takes a multiprocessor.
	blockStart = 40.0
)

// Cost implements space.Structure: operations, memory, and the time in which a thread's loads come one after another,
// but for those that are written out.
func (p *sums) Cost(q parameters) float64 {
	const sector = 32
	terms := float64(nest.CeilDiv(p.extent/q.parts, q.across) * p.others)
	threads := float64(max(warp, nest.CeilDiv(q.side*q.across, warp)*warp))
	row := p.extents[p.last]
	blocks := nest.Product(p.extents) / row * nest.CeilDiv(row, q.side) * q.parts
	work := terms * (1.5 + float64(p.loads)) * threads / machine.Lanes
	neighbours := q.side
	if p.along {
		neighbours = q.across
	}
	apart := max(1, float64(sector)/float64(max(1, neighbours*p.element)))
	memory := terms * float64(q.side*q.across*p.element) * apart / machine.GlobalBytes
	wait := terms/float64(min(q.unroll, int64(terms)+1))*loadWait + loadWait
	if q.across > 1 {
		wait += 2*barrierWait + 30*float64(q.across)
	}
	resident := max(1, min(int64(p.gpu.MultiprocessorThreads)/int64(threads), 32))
	together := float64(min(resident, nest.CeilDiv(blocks, int64(p.gpu.Multiprocessors))))
	waves := float64(nest.CeilDiv(blocks, resident*int64(p.gpu.Multiprocessors)))
	cost := waves*max(max(work, memory)*together, wait) + blockStart*float64(blocks)/float64(p.gpu.Multiprocessors)
	if q.parts > 1 {
		cost += machine.Launch + addWait*float64(q.parts) + float64(2*q.parts*nest.Product(p.extents)*p.wide)/machine.GlobalBytes/float64(p.gpu.Multiprocessors)
	}
	return cost
}
