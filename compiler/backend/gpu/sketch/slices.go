package sketch

import (
	"fmt"
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// sums is the sketch of long sums whose results share no data, such as matrix-vector products. The threads of a block
// share a few results, and each adds up a slice of their sums. If the terms of a result are contiguous, neighbouring
// threads add up terms of one result and exchange registers. Otherwise neighbouring threads have neighbouring
// results, and their partial sums go through shared memory.
type sums struct {
	unit sketch.Unit
	gpu  *target.GPU
	// extents holds those of the results. last is the last axis longer than one, or -1. step is the index of the
	// divided reduction axis, and extent its extent.
	extents []int64
	last    int
	step    int
	extent  int64
	// others is the number of terms per value of that axis, loads the number of loads per term, and element the size
	// in bytes of most of the data.
	others, loads, element int64
	// wide is the size of a result in bytes.
	wide int64
	// along is set if terms are contiguous.
	along bool
	// few is set if blocks with a result each leave multiprocessors idle. Blocks are then larger, and sums are
	// divided into more parts, which need not be equal.
	few bool
}

// slicesParameters are the sketch's parameters.
type slicesParameters struct {
	// side is the number of results per block, across the number of threads per result.
	side, across int64
	// parts is the number of parts of a sum, computed by blocks of their own.
	parts int64
	// unroll is the number of unrolled terms.
	unroll int64
}

const (
	// slicesShortest is the minimum number of a sum's terms that several threads share.
	slicesShortest = 32
	// slicesMinTerms is the minimum number of terms of a part of a sum.
	slicesMinTerms = 16
	// slicesMaxParts is the maximum number of parts of few sums. A block adds them up with a thread for each.
	slicesMaxParts = 512
	// ahead is the number of parts that an adding thread reads at once.
	ahead = 8
)

// NewSlices returns the schedules of a unit with a reduction g, or nil if sums are short.
func NewSlices(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) searchspace.Family {
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
	return &searchspace.Sketch[slicesParameters]{
		Open: searchspace.WithChoices([]searchspace.Parameter[slicesParameters]{
			sketch.Knob("side", func(p *slicesParameters) *int64 { return &p.side }, sketch.AtMost(p.row(), 1, 2, 4, 8, 16, 32, 64, 128)...),
			sketch.Knob("across", func(p *slicesParameters) *int64 { return &p.across }, p.sharers()...),
			sketch.Knob("parts", func(p *slicesParameters) *int64 { return &p.parts }, p.divisions()...),
			sketch.Unrolling(sketch.Knob("unroll", func(p *slicesParameters) *int64 { return &p.unroll }, 1, 4, 8)),
		}),
		Fixed:    slicesParameters{side: 1, across: 1, parts: 1, unroll: 1},
		Variants: []searchspace.Variant[slicesParameters]{{By: searchspace.Direct, Structure: p}},
	}
}

// findStep finds the axis to divide: the one along which most data is contiguous, or else the longest. With few
// results, it is the longest if the other has less than a warp of terms. The terms of a single result always count as
// contiguous.
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
	if p.few && g.Reduce[p.step].Extent < warpThreads {
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

// row returns how many results lie along the last axis.
func (p *sums) row() int64 {
	if p.last < 0 {
		return 1
	}
	return p.extents[p.last]
}

// sharers returns the possible numbers of threads per sum: up to a warp, or whole warps.
func (p *sums) sharers() []int64 {
	list := sketch.AtMost(p.extent, 1, 2, 4, 8, 16, warpThreads)
	if p.few && p.along {
		list = append(list, sketch.Below(p.extent+1, 2*warpThreads, 4*warpThreads, 8*warpThreads, 16*warpThreads)...)
	}
	return list
}

// divisions returns the numbers of parts that sums can be divided into.
func (p *sums) divisions() []int64 {
	list := []int64{1}
	for n := int64(2); n <= slicesMaxParts && p.extent/n >= slicesMinTerms; n *= 2 {
		if p.few || n <= 64 && p.extent%n == 0 {
			list = append(list, n)
		}
	}
	return list
}

// Legal implements searchspace.Structure.
func (p *sums) Legal(q slicesParameters) error {
	switch {
	case q.side*q.across > int64(p.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", q.side*q.across)
	case q.across > p.extent/q.parts:
		return fmt.Errorf("space: %d threads are more than terms", q.across)
	}
	return nil
}

// adders returns how many threads add up the parts of a sum.
func (p *sums) adders(parts int64) int64 {
	if !p.few || parts < warpThreads {
		return 1
	}
	return 1 << (bits.Len64(uint64(parts)) - 1)
}
