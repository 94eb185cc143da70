package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// flat is the sketch of a map: vectorized along the last axis that is longer than one, everything outside of it in
// parallel chunks.
type flat struct {
	target  *target.Target
	unit    *unit
	vec     int
	lanes   int64
	extents []int64
	loads   int
	results streaming
}

// flatParameters are the numbers that the sketch leaves open.
type flatParameters struct {
	// unroll is how many vectors are computed at a time.
	unroll int64
	// span is how many vectors and rows how many rows a chunk has.
	span, rows int64
	// stream stores results past the caches: 1.
	stream int64
}

// newFlat is the sketch of a unit without a reduction.
func newFlat(s *schedule.Schedule, u *unit, t *target.Target) *flat {
	g := s.Stages[u.out]
	f := &flat{target: t, unit: u, vec: -1, extents: g.Tensor.Shape, loads: len(expr.Loads(g.Body)), results: newStreaming(s, g)}
	for k, e := range f.extents {
		if e > 1 {
			f.vec = k
		}
	}
	f.lanes = max(1, int64(t.CPU.VectorBytes)/g.Tensor.DType.Bytes())
	return f
}

// family is the schedules of the map.
func (f *flat) family() space.Family {
	return &space.Sketch[flatParameters]{Open: f.open(), Variants: []space.Variant[flatParameters]{{By: space.Direct, Structure: f}}}
}

// open are the knobs.
func (f *flat) open() []space.Parameter[flatParameters] {
	type p = flatParameters
	if f.vec < 0 {
		return nil
	}
	outer := product(f.extents[:f.vec])
	vectors := ceilDiv(f.extents[f.vec], f.lanes)
	open := []space.Parameter[p]{
		knob("unroll", func(p *p) *int64 { return &p.unroll }, atMost(vectors, 1, 2, 4, 8)...),
		knob("span", func(p *p) *int64 { return &p.span }, atMost(vectors, 1, 4, 16, 64, 256, 1024)...),
		knob("rows", func(p *p) *int64 { return &p.rows }, atMost(outer, 1, 2, 4, 8, 16, 64, 256)...),
	}
	if f.results.open(f.target) {
		open = append(open, knob(streamKnob, func(p *p) *int64 { return &p.stream }, 0, 1))
	}
	return space.Worth(open)
}

// pieceStart is the cycles that beginning a piece of a row costs whose first line does not follow the one before.
const pieceStart = 6

// Cost implements space.Structure: one vector a cycle for each load, a few for each piece of a row that is not
// followed by the next and for each parallel chunk, and the imbalance of workers.
func (f *flat) Cost(p flatParameters) float64 {
	if f.vec < 0 {
		return 1
	}
	rows, outer, vectors := max(1, p.rows), product(f.extents[:f.vec]), ceilDiv(f.extents[f.vec], f.lanes)
	span := max(1, p.span)
	chunks := ceilDiv(outer, rows) * ceilDiv(vectors, span)
	work := float64(outer*vectors) * (float64(1+f.loads) + 1/float64(max(1, p.unroll)))
	if rows > 1 && span < vectors {
		work += pieceStart * float64(outer*ceilDiv(vectors, span))
	}
	workers := machine.Workers(f.target)
	balance := float64(ceilDiv(chunks, workers)*workers) / float64(chunks)
	return work*balance/float64(workers) + 4*float64(chunks) + f.results.cost(f.target, p.stream)
}

// Legal implements space.Structure.
func (f *flat) Legal(flatParameters) error { return nil }

// Apply implements space.Structure.
func (f *flat) Apply(s *schedule.Schedule, p flatParameters) error {
	b, u, id := &builder{s: s}, f.unit, f.unit.out
	if f.vec < 0 {
		return nil
	}
	const peel = schedule.Peel
	vectors, lane := b.split(id, f.vec, f.lanes, peel)
	blocks, inside := b.split(id, vectors, max(1, p.span), peel)
	loop, unrolled := b.split(id, inside, max(1, p.unroll), peel)
	outer := []int{}
	for k := range f.vec {
		outer = append(outer, k)
	}
	if b.err != nil {
		return b.err
	}
	order := append([]int{}, outer...)
	if rows := p.rows; len(outer) > 0 && rows > 1 {
		fused := b.fuse(id, outer)
		chunk, row := b.split(id, fused, rows, peel)
		outer = []int{chunk}
		order = []int{chunk, blocks, row}
	} else {
		order = append(order, blocks)
	}
	order = append(order, loop, unrolled, lane)
	if b.err != nil {
		return b.err
	}
	b.do(s.Reorder(id, order...))
	b.kind(s.Unroll, id, unrolled)
	b.kind(s.Vectorize, id, lane)
	if b.err == nil {
		b.kind(s.Parallel, id, b.fuse(id, append(outer, blocks)))
	}
	f.results.apply(b, id, p.stream)
	for _, o := range slices.Backward(u.also) {
		b.do(s.ComputeAt(o, id, loop))
		vectors, lane := b.split(o, f.vec, f.lanes, peel)
		b.kind(s.Unroll, o, vectors)
		b.kind(s.Vectorize, o, lane)
	}
	return b.err
}
