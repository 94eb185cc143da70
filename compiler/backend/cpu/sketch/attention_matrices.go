package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// attentionMatrices is the sketch with both products in tiles of bfloat16. Keys and values are interleaved first, and
// the softmax result is rounded, which fast numerics allow.
type attentionMatrices struct {
	*attention
	// keys and values are the interleaved operands, with the dimensions of their terms and columns.
	keys, values interleaved
}

type interleaved struct {
	tensor         *expr.Tensor
	terms, columns int
}

// inMatrices returns the sketch in tiles, or nil if tiles do not support the operands or a tile has more rows.
func (a *attention) inMatrices(s *schedule.Schedule) *attentionMatrices {
	terms := schedule.TileBF16.Terms()
	if !microarch.HasTiles(a.target, array.BFloat16) || a.lanes != schedule.TileColumns || a.M < schedule.TileRows || a.D%terms != 0 {
		return nil
	}
	inlined := a.inline(s)
	own := *a
	own.rolled = true
	m := &attentionMatrices{attention: &own}
	scores, mixed := s.Stages[a.Scores], s.Stages[a.Mixed]
	queries, keys, okKeys := operands(scores)
	weights, values, okValues := operands(mixed)
	if inlined != nil || !okKeys || !okValues || queries.DType() != array.BFloat16 ||
		weights.Tensor != s.Stages[a.Exp].Tensor || !sketch.Adjacent(queries, scores.Reduce[0]) {
		return nil
	}
	var okK, okV bool
	m.keys, okK = interleavedBy(keys, scores)
	m.values, okV = interleavedBy(values, mixed)
	if step, linear := sketch.MemoryStep(queries, scores.Axes[a.Dims[a.Scores][a.Row]]); !okK || !okV || !linear || step <= 0 {
		return nil
	}
	return m
}

// inline makes both products read keys and values in place.
func (a *attention) inline(s *schedule.Schedule) (err error) {
	for _, id := range []int{a.Keys, a.Values} {
		if id >= 0 && err == nil {
			err = s.Inline(id)
		}
	}
	return err
}

// operands returns the factors of a product. The second one is the only one that depends on the last axis.
func operands(g *schedule.Stage) (rows, columns *expr.Load, ok bool) {
	x, y, ok := schedule.Factors(g.Body)
	if !ok {
		return nil, nil, false
	}
	last := g.Axes[len(g.Axes)-1]
	if expr.Uses(x, last) {
		x, y = y, x
	}
	return x, y, expr.Uses(y, last) && !expr.Uses(x, last)
}

// interleavedBy returns an operand whose terms and columns index two of its dimensions.
func interleavedBy(l *expr.Load, g *schedule.Stage) (interleaved, bool) {
	x := interleaved{l.Tensor, slices.Index(l.Index, expr.Expr(g.Reduce[0])), slices.Index(l.Index, expr.Expr(g.Axes[len(g.Axes)-1]))}
	return x, x.terms >= 0 && x.columns >= 0 && l.DType() == array.BFloat16 && l.Tensor.Role != expr.Computed
}

// Legal implements searchspace.Structure. It also refuses duplicates of other points.
func (m *attentionMatrices) Legal(p attentionParameters) error {
	th, tv, _ := m.tileOf(p)
	switch {
	case th%schedule.TileRows != 0:
		return fmt.Errorf("space: %d rows are not a multiple of those of a tile", th)
	case p.unroll > 1 || p.keys != m.onlyPlace(m.Keys) || p.values != m.onlyPlace(m.Values):
		return fmt.Errorf("space: keys and values are interleaved, and no step is written out")
	}
	return Matrices{Rows: th / schedule.TileRows, Columns: tv}.Legal()
}

// Cost implements searchspace.Structure. It adds the products, the softmax with its rounding, the interleaving, and
// the imbalance of workers.
func (m *attentionMatrices) Cost(p attentionParameters) float64 {
	th, tv, block := m.tileOf(p)
	sums, terms := Matrices{Rows: th / schedule.TileRows, Columns: tv}, schedule.TileBF16.Terms()
	product := func(columns, reduce int64) float64 {
		tiles := float64(sketch.CeilDiv(block, th) * sketch.CeilDiv(columns, tv*m.lanes))
		return tiles * (sums.Cycles(float64(sketch.CeilDiv(reduce, terms))) + 3*float64(th*tv))
	}
	cycles := product(m.N, m.D) + product(m.E, m.N)
	cycles += float64(block) * (float64(sketch.CeilDiv(m.N, m.lanes))*(softmaxCycles+1) + acrossCycles)
	if 6*block*m.N > m.target.CPU.L2Bytes/4 {
		cycles *= 1.2
	}
	workers := microarch.Workers(m.target)
	chunks := m.Batches * sketch.CeilDiv(m.M, block)
	lay := func(x interleaved, elements int64) float64 {
		return InterleaveCycles(float64(m.Batches*elements), 2, x.terms == len(x.tensor.Shape)-1) / float64(workers)
	}
	return float64(sketch.CeilDiv(chunks, workers))*cycles + lay(m.keys, m.N*m.D) + lay(m.values, m.N*m.E) + 3*microarch.Region(m.target)
}

// Apply implements searchspace.Structure.
func (m *attentionMatrices) Apply(s *schedule.Schedule, p attentionParameters) (err error) {
	defer sketch.Catch(&err)
	b := &sketch.Builder{S: s}
	th, tv, block := m.tileOf(p)
	b.Do(m.inline(s))
	rounded := m.applyOperands(b)
	_, at, tileAt := m.outerNest(b, attentionParameters{}, th, tv, block)
	b.ComputeAt(m.Mixed, m.Out, tileAt)
	m.matrixNest(b, m.Mixed)
	m.applyRounded(b, rounded, at)
	m.softmax(b, at)
	b.ComputeAt(m.Masked, m.Out, at)
	tileAt = m.scoresNest(b, th, tv)
	b.ComputeAt(m.Scores, m.Masked, tileAt)
	m.matrixNest(b, m.Scores)
	return nil
}

// applyOperands interleaves keys and values, and returns the stage that rounds the softmax result. If the number of
// keys is not a multiple of an instruction's terms, it appends zeros to both operands of their sums.
func (m *attentionMatrices) applyOperands(b *sketch.Builder) (rounded int) {
	number := func(stage int, t *expr.Tensor) int {
		var tensors []*expr.Tensor
		for _, l := range expr.Loads(b.S.Stages[stage].Body) {
			tensors = append(tensors, l.Tensor)
		}
		return slices.Index(tensors, t)
	}
	keys := sketch.Get(b.S.Interleave(m.Scores, number(m.Scores, m.keys.tensor), m.keys.terms, m.keys.columns, 2))
	ApplyInterleaved(b, keys)
	place := number(m.Mixed, m.values.tensor)
	rounded = sketch.Get(b.S.Round(m.Mixed, 1-place))
	through := -1
	if m.N%schedule.TileBF16.Terms() != 0 {
		copies := sketch.Get(b.S.Extend(m.Mixed, schedule.TileBF16.Terms()))
		b.Do(b.S.Inline(rounded))
		rounded, through = copies[1-place], copies[place]
	}
	values := sketch.Get(b.S.Interleave(m.Mixed, place, m.values.terms, m.values.columns, 2))
	if through >= 0 {
		b.Do(b.S.Inline(through))
	}
	ApplyInterleaved(b, values)
	return rounded
}

// applyRounded rounds a block of rows.
func (m *attentionMatrices) applyRounded(b *sketch.Builder, id, at int) {
	_, lane := b.Split(id, len(b.S.Stages[id].Axes)-1, 2*m.lanes, schedule.Peel)
	b.Mark(b.S.Vectorize, id, lane)
	b.ComputeAt(id, m.Out, at)
}

// matrixNest keeps a tile's sums in tile registers.
func (m *attentionMatrices) matrixNest(b *sketch.Builder, id int) {
	axes := len(b.S.Stages[id].Axes)
	steps, terms := b.Split(id, axes, schedule.TileBF16.Terms(), schedule.Peel)
	b.Do(b.S.Reorder(id, slices.Concat(m.batchOf(id), []int{steps, terms, m.Dims[id][m.Row], axes - 1})...))
	b.Do(b.S.Tensorize(id, terms, schedule.TileBF16))
}
