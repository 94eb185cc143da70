package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// flat is the sketch of a map: vectorized along the last axis that is longer than one, everything outside of it in
// parallel chunks.
type flat struct {
	vec     int
	lanes   int64
	extents []int64
	loads   int
	results streaming
}

func newFlat(s *schedule.Schedule, g *schedule.Stage, t *target.Target) *flat {
	f := &flat{vec: -1, extents: g.Tensor.Shape, loads: len(expr.Loads(g.Body)), results: newStreaming(s, g)}
	for k, e := range f.extents {
		if e > 1 {
			f.vec = k
		}
	}
	f.lanes = max(1, int64(t.CPU.VectorBytes)/g.Tensor.DType.Bytes())
	return f
}

func (f *flat) knobs(t *target.Target) []space.Knob {
	if f.vec < 0 {
		return nil
	}
	outer := product(f.extents[:f.vec])
	vectors := ceilDiv(f.extents[f.vec], f.lanes)
	knobs := []space.Knob{
		{Name: "unroll", Values: atMost(vectors, 1, 2, 4, 8)},
		{Name: "span", Values: atMost(vectors, 1, 4, 16, 64, 256, 1024)},
		{Name: "rows", Values: atMost(outer, 1, 2, 4, 8, 16, 64, 256)},
	}
	var open []space.Knob
	for _, k := range knobs {
		if len(k.Values) > 1 {
			open = append(open, k)
		}
	}
	return append(open, f.results.knobs(t)...)
}

// pieceStart is the cycles that beginning a piece of a row costs whose first line does not follow the one before.
const pieceStart = 6

// cost estimates cycles: one vector a cycle for each load, a few for each piece of a row that is not followed by the
// next and for each parallel chunk, and the imbalance of workers.
func (f *flat) cost(t *target.Target, set space.Settings) float64 {
	if f.vec < 0 {
		return 1
	}
	rows, outer, vectors := max(1, set["rows"]), product(f.extents[:f.vec]), ceilDiv(f.extents[f.vec], f.lanes)
	span := max(1, set["span"])
	chunks := ceilDiv(outer, rows) * ceilDiv(vectors, span)
	work := float64(outer*vectors) * (float64(1+f.loads) + 1/float64(max(1, set["unroll"])))
	if rows > 1 && span < vectors {
		work += pieceStart * float64(outer*ceilDiv(vectors, span))
	}
	workers := int64(max(1, t.CPU.Threads))
	balance := float64(ceilDiv(chunks, workers)*workers) / float64(chunks)
	return work*balance/float64(workers) + 4*float64(chunks) + f.results.cost(t, set)
}

func (f *flat) legal(*target.Target, space.Settings) error { return nil }

func (f *flat) apply(s *schedule.Schedule, u *unit, _ *target.Target, set space.Settings) error {
	b, id := &builder{s: s}, u.out
	if f.vec < 0 {
		return nil
	}
	const peel = schedule.Peel
	vectors, lane := b.split(id, f.vec, f.lanes, peel)
	blocks, inside := b.split(id, vectors, max(1, set["span"]), peel)
	loop, unrolled := b.split(id, inside, max(1, set["unroll"]), peel)
	outer := []int{}
	for k := range f.vec {
		outer = append(outer, k)
	}
	if b.err != nil {
		return b.err
	}
	order := append([]int{}, outer...)
	if rows := set["rows"]; len(outer) > 0 && rows > 1 {
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
	f.results.apply(b, id, set)
	for _, o := range slices.Backward(u.also) {
		b.do(s.ComputeAt(o, id, loop))
		vectors, lane := b.split(o, f.vec, f.lanes, peel)
		b.kind(s.Unroll, o, vectors)
		b.kind(s.Vectorize, o, lane)
	}
	return b.err
}
