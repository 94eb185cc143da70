package sketch

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// FoldAlgorithm is the algorithm of the folds sketch.
var FoldAlgorithm = searchspace.Algorithm{Name: "terms in lanes", Number: 9}

// folds is the sketch of sums of products of data and constants in which a small group of neighbouring results shares
// the same data. If results were lanes, each would pick its data. Here lanes are terms, which are contiguous in the
// data and in the packed constants of several neighbouring results; they are added up at the end. A tile is a few
// columns of positions x outputs.
//
//	parallel over (outer axes, blocks of rows, outputs / tile), in either order
//	  rows of the block, columns / tile
//	    [padding or another feed, where the knob says so]
//	    partial sums of the tile = 0
//	    for reduction (the innermost iterations unrolled)
//	      partial sums += ...            columns x vectors unrolled, vectorized over outputs x terms
//	    sums of the tile = neighbours of the partial sums, added up
//	    out tile = the map that ends the unit
type folds struct {
	target *target.Target
	unit   sketch.Unit
	lanes  int64
	// out is the last axis, the outputs; col and row are the axes of positions, or -1; terms is the last axis of the
	// reduction.
	out, col, row, terms int
	extents, reduce      []int64
	// max is the maximum number of terms in lanes, a power of two; group is the number of outputs that share data.
	max, group int64
	weights    foldsPackable
	// accesses holds those of the data, the constants and the result; fed is set if a stage feeds the data.
	accesses []cost.Access
	fed      bool
	ends     []cost.Access
	// inside is the fraction of products outside the padding; feedOps counts the operations of the feeding stages.
	inside  float64
	feedOps int
}

// foldsPackable is the constant, with the dimensions indexed by outputs and terms.
type foldsPackable struct{ constant, out, terms, rank int }

// foldsParameters are the sketch's parameters.
type foldsParameters struct {
	// columns x outputs is the tile.
	columns, outputs int64
	// factor is the number of terms in lanes, a power of two.
	factor int64
	// rows is the maximum number of rows per block. order is 0 if all outputs of a block precede the next block, and
	// 1 if all blocks precede the next outputs.
	rows, order int64
	// unroll is the number of unrolled steps of the reduction.
	unroll int64
	// feed selects where the stages that feed the reduction are computed.
	feed int64
}

// minTerms is the minimum number of lanes for which the final addition pays off.
const minTerms = 4

// NewFolds returns the schedules of a reduction in addition to those of its tile, or nil if its groups are not small
// or have no contiguous terms.
func NewFolds(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, beside *Tile) searchspace.Family {
	x := &folds{
		target: t, unit: u, lanes: int64(t.CPU.VectorBytes) / array.Float32.Bytes(), out: len(acc.Axes) - 1, col: -1, row: -1,
		terms: len(acc.Reduce) - 1, extents: acc.Tensor.Shape, ends: beside.stored(),
	}
	if acc.Combiner != expr.Sum || acc.Tensor.DType != array.Float32 || x.out < 1 || x.terms < 0 || len(u.Also) > 0 || x.lanes < minTerms {
		return nil
	}
	for _, r := range acc.Reduce {
		x.reduce = append(x.reduce, r.Extent)
	}
	length := x.reduce[x.terms]
	if x.max = min(length&-length, x.lanes); x.max < minTerms || !x.findOperands(s, acc) {
		return nil
	}
	x.inside, x.feedOps = beside.inside, beside.feedOps
	x.choosePositions()
	if x.col < 0 || len(x.tiles(x.max)) == 0 {
		return nil
	}
	return &searchspace.Sketch[foldsParameters]{Open: x.open(), Variants: []searchspace.Variant[foldsParameters]{{By: FoldAlgorithm, Structure: x}}, Good: x.seeds()}
}

// findOperands finds the data and the constants, and reports whether terms and outputs index them as required.
func (x *folds) findOperands(s *schedule.Schedule, acc *schedule.Stage) bool {
	product, ok := acc.Body.(*expr.Binary)
	if !ok || product.Op != expr.Mul {
		return false
	}
	data, okData := product.A.(*expr.Load)
	weights, okWeights := product.B.(*expr.Load)
	if !okData || !okWeights {
		return false
	}
	if s.Constant(data.Tensor) >= 0 {
		data, weights = weights, data
	}
	if !x.findWeights(s, weights, acc) || !sketch.Adjacent(data, acc.Reduce[x.terms]) {
		return false
	}
	x.accesses = Accesses(s, acc, []*expr.Tensor{s.ConstantTensor(x.weights.constant)})
	for _, f := range x.unit.Feeds {
		x.fed = x.fed || s.Stages[f].Tensor == data.Tensor
	}
	return x.readsGroups(x.data())
}

// readsGroups reports whether the terms of a sum, which are contiguous in the data, are consecutive for small output
// groups.
func (x *folds) readsGroups(data *cost.Access) bool {
	last, terms := len(data.Tensor.Shape)-1, len(x.extents)+x.terms
	for d := range last {
		if data.Coefficient(d, x.out) != 0 || data.Coefficient(d, terms) != 0 {
			return false
		}
	}
	if x.group = max(1, data.GroupOf(x.out)); x.group > 1 {
		data.Grouped = x.out
	}
	apart := math.Round(data.Coefficient(last, x.out) * float64(x.group))
	return int64(apart) == x.reduce[x.terms] && x.group%x.lanes != 0 && x.group < x.extents[x.out]
}

// findWeights reports whether the other operand is a constant with a dimension each for outputs and terms.
func (x *folds) findWeights(s *schedule.Schedule, l *expr.Load, acc *schedule.Stage) bool {
	x.weights = foldsPackable{s.Constant(l.Tensor), -1, -1, len(l.Index)}
	for d, e := range l.Index {
		switch {
		case e == expr.Expr(acc.Axes[x.out]):
			x.weights.out = d
		case e == expr.Expr(acc.Reduce[x.terms]):
			x.weights.terms = d
		case sketch.UsesAny(e, acc.Axes):
			return false
		}
	}
	return x.weights.constant >= 0 && x.weights.out >= 0 && x.weights.terms >= 0
}

// choosePositions chooses the last two axes of positions.
func (x *folds) choosePositions() {
	for k := x.out - 1; k >= 0; k-- {
		switch {
		case x.extents[k] == 1:
		case x.col < 0:
			x.col = k
		case x.row < 0:
			x.row = k
		}
	}
}

// factors returns the possible numbers of terms in lanes, largest first.
func (x *folds) factors() (list []int64) {
	for n := x.max; n >= minTerms; n /= 2 {
		if len(x.tiles(n)) > 0 {
			list = append(list, n)
		}
	}
	return list
}

// tiles returns the possible numbers of outputs per tile for a number of terms in lanes. Vectors must be whole, with
// known groups, and the remainder must also be a power of two. Fewer terms offer fewer tiles.
func (x *folds) tiles(factor int64) (list []int64) {
	for n := x.lanes; n > 1; n /= 2 {
		rest := x.extents[x.out] % n
		if n*factor >= x.lanes && n <= x.extents[x.out] && rest&(rest-1) == 0 && (n%x.group == 0 || x.group%n == 0) {
			list = append(list, n)
		}
	}
	return list
}

// vectors returns the number of partial sum vectors per position.
func (x *folds) vectors(outputs, factor int64) int64 { return sketch.CeilDiv(outputs*factor, x.lanes) }

// open returns the knobs.
func (x *folds) open() []searchspace.Parameter[foldsParameters] {
	type p = foldsParameters
	open := []searchspace.Parameter[p]{
		sketch.Knob("fw", func(p *p) *int64 { return &p.columns }, sketch.AtMost(x.extents[x.col], 1, 2, 3, 4, 6, 7, 8, 12, 14)...),
		sketch.Knob("fo", func(p *p) *int64 { return &p.outputs }, x.tiles(x.max)...),
		sketch.Knob("ff", func(p *p) *int64 { return &p.factor }, x.factors()...),
		sketch.Knob("fb", func(p *p) *int64 { return &p.rows }, sketch.AtMost(x.extent(x.row), 1, 2, 4, 7, 8, 14, 16, 28, 56, 1024)...),
		sketch.Knob("ford", func(p *p) *int64 { return &p.order }, 0, 1),
		sketch.Unrolling(sketch.Knob("fku", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(x.steps(minTerms), 1, 2, 4, 8, 16, 32)...)),
	}
	if x.fed {
		open = append(open, sketch.Knob("ffeed", func(p *p) *int64 { return &p.feed }, sketch.Inline, sketch.Alone, sketch.InBlock, sketch.InTile))
	}
	return searchspace.WithChoices(open)
}

// seeds returns tiles that fill the registers.
func (x *folds) seeds() (list []searchspace.Candidate[foldsParameters]) {
	for _, factor := range x.factors() {
		for _, n := range x.tiles(factor) {
			for _, columns := range []int64{1, 2, 3, 4, 7, 14} {
				for _, feed := range []int64{sketch.Inline, sketch.Alone} {
					p := foldsParameters{columns: columns, outputs: n, factor: factor, rows: 7, unroll: 4, feed: feed}
					list = append(list, searchspace.Candidate[foldsParameters]{By: FoldAlgorithm, Parameters: p})
				}
			}
		}
	}
	return list
}

func (x *folds) extent(axis int) int64 {
	if axis < 0 {
		return 1
	}
	return x.extents[axis]
}

// steps returns how many steps a sum takes.
func (x *folds) steps(factor int64) int64 { return sketch.Product(x.reduce) / factor }

// sizes returns the numbers derived from the parameters.
func (x *folds) sizes(p foldsParameters) foldsParameters {
	if p.factor == 0 { // not a knob here
		p.factor = x.factors()[0]
	}
	if p.outputs == 0 { // not a knob here
		p.outputs = x.tiles(p.factor)[0]
	}
	p.columns, p.unroll = max(1, p.columns), max(1, p.unroll)
	p.rows = sketch.DivisorAtMost(x.extent(x.row), max(1, p.rows))
	return p
}

// Legal implements searchspace.Structure.
func (x *folds) Legal(p foldsParameters) error {
	z := x.sizes(p)
	if !slices.Contains(x.tiles(z.factor), z.outputs) || z.columns > x.extents[x.col] {
		return fmt.Errorf("space: a tile of %dx%d outputs by %d terms cuts through vectors, or groups of %d", z.columns, z.outputs, z.factor, x.group)
	}
	r := RegisterTile{Rows: z.columns, Vectors: x.vectors(z.outputs, z.factor), Unroll: z.unroll, Whole: z.unroll >= x.steps(z.factor)}
	r.More = 2 - r.Vectors // constants come from memory
	return r.Legal(x.target)
}
