package elementwise

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/core"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// flat is the sketch of a map: vectorized along the last axis that is longer than one, everything outside of it in
// parallel chunks.
type flat struct {
	target  *target.Target
	unit    nest.Unit
	vec     int
	lanes   int64
	extents []int64
	loads   int
	results core.Streaming
}

// parameters are the numbers that the sketch leaves open.
type parameters struct {
	// unroll is how many vectors are computed at a time.
	unroll int64
	// span is how many vectors and rows how many rows a chunk has.
	span, rows int64
	// stream stores results past the caches: 1.
	stream int64
}

// New is the schedules of a unit without a reduction.
func New(s *schedule.Schedule, u nest.Unit, t *target.Target) space.Family {
	g := s.Stages[u.Out]
	f := &flat{target: t, unit: u, vec: -1, extents: g.Tensor.Shape, loads: len(expr.Loads(g.Body)), results: core.NewStreaming(s, g)}
	for k, e := range f.extents {
		if e > 1 {
			f.vec = k
		}
	}
	f.lanes = max(1, int64(t.CPU.VectorBytes)/g.Tensor.DType.Bytes())
	return &space.Sketch[parameters]{Open: f.open(), Variants: []space.Variant[parameters]{{By: space.Direct, Structure: f}}}
}

// open are the knobs.
func (f *flat) open() []space.Parameter[parameters] {
	type p = parameters
	if f.vec < 0 {
		return nil
	}
	outer := nest.Product(f.extents[:f.vec])
	vectors := nest.CeilDiv(f.extents[f.vec], f.lanes)
	open := []space.Parameter[p]{
		nest.Knob("unroll", func(p *p) *int64 { return &p.unroll }, nest.AtMost(vectors, 1, 2, 4, 8)...),
		nest.Knob("span", func(p *p) *int64 { return &p.span }, nest.AtMost(vectors, 1, 4, 16, 64, 256, 1024)...),
		nest.Knob("rows", func(p *p) *int64 { return &p.rows }, nest.AtMost(outer, 1, 2, 4, 8, 16, 64, 256)...),
	}
	if f.results.Open(f.target) {
		open = append(open, nest.Knob(core.StreamKnob, func(p *p) *int64 { return &p.stream }, 0, 1))
	}
	return space.Worth(open)
}

// pieceStart is the cycles that beginning a piece of a row costs whose first line does not follow the one before.
const pieceStart = 6

// Cost implements space.Structure: one vector a cycle for each load, a few for each piece of a row that is not
// followed by the next and for each parallel chunk, and the imbalance of workers.
func (f *flat) Cost(p parameters) float64 {
	if f.vec < 0 {
		return 1
	}
	rows, outer, vectors := max(1, p.rows), nest.Product(f.extents[:f.vec]), nest.CeilDiv(f.extents[f.vec], f.lanes)
	span := max(1, p.span)
	chunks := nest.CeilDiv(outer, rows) * nest.CeilDiv(vectors, span)
	work := float64(outer*vectors) * (float64(1+f.loads) + 1/float64(max(1, p.unroll)))
	if rows > 1 && span < vectors {
		work += pieceStart * float64(outer*nest.CeilDiv(vectors, span))
	}
	workers := machine.Workers(f.target)
	balance := float64(nest.CeilDiv(chunks, workers)*workers) / float64(chunks)
	return work*balance/float64(workers) + 4*float64(chunks) + f.results.Cost(f.target, p.stream)
}

// Legal implements space.Structure.
func (f *flat) Legal(parameters) error { return nil }

// Apply implements space.Structure.
func (f *flat) Apply(s *schedule.Schedule, p parameters) error {
	b, u, id := &nest.Builder{S: s}, f.unit, f.unit.Out
	if f.vec < 0 {
		return nil
	}
	const peel = schedule.Peel
	vectors, lane := b.Split(id, f.vec, f.lanes, peel)
	blocks, inside := b.Split(id, vectors, max(1, p.span), peel)
	loop, unrolled := b.Split(id, inside, max(1, p.unroll), peel)
	outer := []int{}
	for k := range f.vec {
		outer = append(outer, k)
	}
	if b.Err != nil {
		return b.Err
	}
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
	if b.Err != nil {
		return b.Err
	}
	b.Do(s.Reorder(id, order...))
	b.Mark(s.Unroll, id, unrolled)
	b.Mark(s.Vectorize, id, lane)
	if b.Err == nil {
		b.Mark(s.Parallel, id, b.Fuse(id, append(outer, blocks)))
	}
	f.results.Apply(b, id, p.stream)
	for _, o := range slices.Backward(u.Also) {
		b.Do(s.ComputeAt(o, id, loop))
		vectors, lane := b.Split(o, f.vec, f.lanes, peel)
		b.Mark(s.Unroll, o, vectors)
		b.Mark(s.Vectorize, o, lane)
	}
	return b.Err
}
