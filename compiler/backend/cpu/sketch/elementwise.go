package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// flat is the sketch of a map, in which each element is computed independently. It vectorises the last axis longer
// than one and divides everything outside into parallel chunks.
type flat struct {
	target  *target.Target
	unit    sketch.Unit
	vec     int
	lanes   int64
	extents []int64
	loads   int
	results Streaming
}

// elementwiseParameters are the sketch's parameters.
type elementwiseParameters struct {
	// unroll is the number of vectors computed at a time.
	unroll int64
	// span and rows are the vectors and rows per chunk.
	span, rows int64
	// stream is 1 for non-temporal stores.
	stream int64
}

// NewElementwise returns the schedules of a unit without a reduction.
func NewElementwise(s *schedule.Schedule, u sketch.Unit, t *target.Target) searchspace.Family {
	g := s.Stages[u.Out]
	f := &flat{target: t, unit: u, vec: sketch.LastLong(g.Tensor.Shape), extents: g.Tensor.Shape, loads: len(expr.Loads(g.Body)), results: NewStreaming(s, g)}
	f.lanes = max(1, int64(t.CPU.VectorBytes)/g.Tensor.DType.Bytes())
	return &searchspace.Sketch[elementwiseParameters]{Open: f.open(), Variants: []searchspace.Variant[elementwiseParameters]{{By: searchspace.Direct, Structure: f}}}
}

// open returns the knobs.
func (f *flat) open() []searchspace.Parameter[elementwiseParameters] {
	type p = elementwiseParameters
	if f.vec < 0 {
		return nil
	}
	outer := sketch.Product(f.extents[:f.vec])
	vectors := sketch.CeilDiv(f.extents[f.vec], f.lanes)
	open := []searchspace.Parameter[p]{
		sketch.Knob("unroll", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(vectors, 1, 2, 4, 8)...),
		sketch.Knob("span", func(p *p) *int64 { return &p.span }, sketch.AtMost(vectors, 1, 4, 16, 64, 256, 1024)...),
		sketch.Knob("rows", func(p *p) *int64 { return &p.rows }, sketch.AtMost(outer, 1, 2, 4, 8, 16, 64, 256)...),
	}
	if f.results.Open(f.target) {
		open = append(open, sketch.Knob(StreamKnob, func(p *p) *int64 { return &p.stream }, 0, 1))
	}
	return searchspace.WithChoices(open)
}

// elementwisePieceStart is the cycles of starting a piece of a row whose first line does not follow the previous one.
const elementwisePieceStart = 6

// Cost implements searchspace.Structure. It adds one cycle per vector load, a few cycles per discontiguous piece of a
// row and per parallel chunk, and the imbalance of workers.
func (f *flat) Cost(p elementwiseParameters) float64 {
	if f.vec < 0 {
		return 1
	}
	rows, outer, vectors := max(1, p.rows), sketch.Product(f.extents[:f.vec]), sketch.CeilDiv(f.extents[f.vec], f.lanes)
	span := max(1, p.span)
	chunks := sketch.CeilDiv(outer, rows) * sketch.CeilDiv(vectors, span)
	work := float64(outer*vectors) * (float64(1+f.loads) + 1/float64(max(1, p.unroll)))
	if rows > 1 && span < vectors {
		work += elementwisePieceStart * float64(outer*sketch.CeilDiv(vectors, span))
	}
	return work*microarch.Share(f.target, float64(chunks)) + 4*float64(chunks) + f.results.Cost(f.target, p.stream)
}

// Legal implements searchspace.Structure.
func (f *flat) Legal(elementwiseParameters) error { return nil }

// Apply implements searchspace.Structure.
func (f *flat) Apply(s *schedule.Schedule, p elementwiseParameters) (err error) {
	defer sketch.Catch(&err)
	b, u, id := &sketch.Builder{S: s}, f.unit, f.unit.Out
	if f.vec < 0 {
		return nil
	}
	const peel = schedule.Peel
	vectors, lane := b.Split(id, f.vec, f.lanes, peel)
	blocks, inside := b.Split(id, vectors, max(1, p.span), peel)
	loop, unrolled := b.Split(id, inside, max(1, p.unroll), peel)
	outer := sketch.Axes(f.vec)
	order := append([]int{}, outer...)
	if rows := p.rows; len(outer) > 0 && rows > 1 {
		fused := b.Fuse(id, outer)
		chunk, row := b.Split(id, fused, rows, peel)
		outer = []int{chunk}
		order = []int{chunk, blocks, row}
	} else {
		order = append(order, blocks)
	}
	order = append(order, loop, unrolled, lane)
	b.Do(s.Reorder(id, order...))
	b.Mark(s.Unroll, id, unrolled)
	b.Mark(s.Vectorize, id, lane)
	b.Mark(s.Parallel, id, b.Fuse(id, append(outer, blocks)))
	f.results.Apply(b, id, p.stream)
	for _, o := range slices.Backward(u.Also) {
		b.ComputeAt(o, id, loop)
		vectors, lane := b.Split(o, f.vec, f.lanes, peel)
		b.Mark(s.Unroll, o, vectors)
		b.Mark(s.Vectorize, o, lane)
	}
	return nil
}
