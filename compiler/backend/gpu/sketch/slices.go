// Slices is the sketch of long sums whose results share nothing, such as products of a matrix and a vector:
// the threads of a block have a few results together, of whose sums each adds up a slice. Begin to read at New.

package sketch

import (
	"fmt"
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sums is the sketch. Where the results' terms lie side by side, neighbouring threads add up terms of one result and
// exchange what they have; elsewhere neighbouring threads have neighbouring results, and their partial sums go through
// shared memory.
type sums struct {
	unit sketch.Unit
	gpu  *target.GPU
	// extents are those of the results, last is the last axis that is longer than one; -1 where there is no axis. Step
	// is the reduction axis that is cut, by its place among the reduction's, and extent its own.
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
	// few is set where blocks with a result each leave multiprocessors without work: blocks are larger then, and sums
	// are divided into more parts, which need not be equal.
	few bool
}

// slicesParameters are the numbers that the sketch leaves open.
type slicesParameters struct {
	// side is the results of a block, across the threads of each.
	side, across int64
	// parts is in how many parts sums are computed, by blocks of their own.
	parts int64
	// unroll is how many terms are written out.
	unroll int64
}

const (
	// slicesShortest is the least terms of a sum that several threads share.
	slicesShortest = 32
	slicesWarp     = 32
	// slicesLeastTerms is how many a part of a sum has at least.
	slicesLeastTerms = 16
	// mostParts is in how many parts few sums are divided at most: a block adds them up, a thread for each.
	mostParts = 512
	// ahead is how many parts a thread that adds them up reads at once.
	ahead = 8
)

// NewSlices is the schedules of a unit with a reduction, g; nil where sums are short.
func NewSlices(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) space.Family {
	if len(g.Reduce) == 0 {
		return nil
	}
	p := &sums{unit: u, gpu: gpu, extents: g.Tensor.Shape, last: min(0, len(g.Axes)-1), others: 1, wide: g.Tensor.DType.Bytes()}
	p.few = sketch.Product(p.extents) < int64(gpu.Multiprocessors)
	for k, e := range p.extents {
		if e > 1 {
			p.last = k
		}
	}
	p.findStep(g)
	if p.extent*p.others < slicesShortest || p.extent < 4 {
		return nil
	}
	return &space.Sketch[slicesParameters]{
		Open: space.Worth([]space.Parameter[slicesParameters]{
			sketch.Knob("side", func(p *slicesParameters) *int64 { return &p.side }, sketch.AtMost(p.row(), 1, 2, 4, 8, 16, 32, 64, 128)...),
			sketch.Knob("across", func(p *slicesParameters) *int64 { return &p.across }, p.sharers()...),
			sketch.Knob("parts", func(p *slicesParameters) *int64 { return &p.parts }, p.divisions()...),
			sketch.Unrolling(sketch.Knob("unroll", func(p *slicesParameters) *int64 { return &p.unroll }, 1, 4, 8)),
		}),
		Fixed:    slicesParameters{side: 1, across: 1, parts: 1, unroll: 1},
		Variants: []space.Variant[slicesParameters]{{By: space.Direct, Structure: p}},
	}
}

// findStep finds the axis to cut: that along which most of what is read lies side by side, or else the longest. Of few
// results it is the longest where the other has less than a warp of terms, and the terms of a single result have no
// other neighbours.
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
	longest := p.step
	for k, v := range g.Reduce {
		if heaviest != nil && v.Extent > 1 && sketch.Adjacent(heaviest, v) {
			p.step, p.along = k, true
		}
	}
	if p.few && g.Reduce[p.step].Extent < slicesWarp {
		p.step = longest
	}
	p.along = p.along || sketch.Product(p.extents) == 1
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

// row is how many results lie along the last axis.
func (p *sums) row() int64 {
	if p.last < 0 {
		return 1
	}
	return p.extents[p.last]
}

// sharers are the numbers of threads that a sum can have: a warp at most, or whole ones.
func (p *sums) sharers() []int64 {
	list := sketch.AtMost(p.extent, 1, 2, 4, 8, 16, slicesWarp)
	if p.few && p.along {
		list = append(list, sketch.Below(p.extent+1, 2*slicesWarp, 4*slicesWarp, 8*slicesWarp, 16*slicesWarp)...)
	}
	return list
}

// divisions are the numbers of parts that sums can be divided into.
func (p *sums) divisions() []int64 {
	list := []int64{1}
	for n := int64(2); n <= mostParts && p.extent/n >= slicesLeastTerms; n *= 2 {
		if p.few || n <= 64 && p.extent%n == 0 {
			list = append(list, n)
		}
	}
	return list
}

// Legal implements space.Structure.
func (p *sums) Legal(q slicesParameters) error {
	switch {
	case q.side*q.across > int64(p.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", q.side*q.across)
	case q.across > p.extent/q.parts:
		return fmt.Errorf("space: %d threads are more than terms", q.across)
	}
	return nil
}

// adders is how many threads add up so many parts of a sum.
func (p *sums) adders(parts int64) int64 {
	if !p.few || parts < slicesWarp {
		return 1
	}
	return 1 << (bits.Len64(uint64(parts)) - 1)
}
