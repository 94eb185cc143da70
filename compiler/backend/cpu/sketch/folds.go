// Folds has the schedules of a reduction over the channels of small groups that keep several terms of each sum
// in the lanes of vectors, and add those up at the end.

package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// FoldAlgorithm is that of these schedules.
var FoldAlgorithm = space.Algorithm{Name: "terms in lanes", Number: 9}

// folds is the sketch of sums of products of data and constants, where few neighbouring results, a group, have the
// same data. Lanes that were results would each pick their data; here they are terms, which lie side by side in the
// data as well as in the packed constants, of several results next to one another. A tile is a few columns of
// positions x outputs.
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
	// out is the axis of outputs, the last; col and row are those of positions, -1 for none; terms is the last axis of
	// the reduction.
	out, col, row, terms int
	extents, reduce      []int64
	// most is how many terms of a sum may be lanes, a power of two; group how many outputs have the same data.
	most, group int64
	weights     foldsPackable
	// accesses are those of the data, of the constants and of the result; fed is set where a stage feeds the data.
	accesses []Access
	fed      bool
	ends     []Access
	// inside is the part of the products whose data is not padding; feedOps counts the operations on what feeds it.
	inside  float64
	feedOps int
}

// foldsPackable is the constant, with the dimensions that outputs and terms index.
type foldsPackable struct{ constant, out, terms, rank int }

// foldsParameters are the numbers that the sketch leaves open.
type foldsParameters struct {
	// columns x outputs are the tile.
	columns, outputs int64
	// factor is how many terms of a sum are lanes, a power of two.
	factor int64
	// rows are the most rows of a block; order is 0 where all outputs of a block come before the next one, and 1 where
	// all blocks do before the next outputs.
	rows, order int64
	// unroll is how many steps of the reduction are written out.
	unroll int64
	// feed is where what feeds the reduction is computed.
	feed int64
}

// leastTerms are lanes for which adding up pays.
const leastTerms = 4

// NewFolds is the schedules of a reduction beside those of its tile; nil where its groups are not small, or have no
// terms side by side.
func NewFolds(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, beside *Tile) space.Family {
	x := &folds{
		target: t, unit: u, lanes: int64(t.CPU.VectorBytes) / array.Float32.Bytes(), out: len(acc.Axes) - 1, col: -1, row: -1,
		terms: len(acc.Reduce) - 1, extents: acc.Tensor.Shape, ends: beside.Ends(),
	}
	if acc.Combiner != expr.Sum || acc.Tensor.DType != array.Float32 || x.out < 1 || x.terms < 0 || len(u.Also) > 0 || x.lanes < leastTerms {
		return nil
	}
	for _, r := range acc.Reduce {
		x.reduce = append(x.reduce, r.Extent)
	}
	length := x.reduce[x.terms]
	if x.most = min(length&-length, x.lanes); x.most < leastTerms || !x.findOperands(s, acc) {
		return nil
	}
	x.inside, x.feedOps = beside.Feed()
	x.choosePositions()
	if x.col < 0 || len(x.tiles(x.most)) == 0 {
		return nil
	}
	return &space.Sketch[foldsParameters]{Open: x.open(), Variants: []space.Variant[foldsParameters]{{By: FoldAlgorithm, Structure: x}}, Good: x.seeds()}
}

// findOperands finds the data and the constants, and reports whether terms and outputs move them as they must.
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
	if !x.readsGroups(data, acc) || !x.findWeights(s, weights, acc) {
		return false
	}
	x.setAccesses(s, acc, data)
	return true
}

// readsGroups reports whether the terms of a sum lie side by side in the data, and those of small groups of outputs
// one behind the other.
func (x *folds) readsGroups(data *expr.Load, acc *schedule.Stage) bool {
	out, terms := acc.Axes[x.out], acc.Reduce[x.terms]
	last := len(data.Index) - 1
	for d, index := range data.Index {
		if d < last && (expr.Uses(index, out) || expr.Uses(index, terms)) {
			return false
		}
	}
	if !sketch.Adjacent(data, terms) || Between(data.Index[last], out) != terms.Extent {
		return false
	}
	x.group = 1
	if coef, _ := expr.Linearize(data.Index[last]).Coef(out); coef == 0 {
		x.group = GroupOf(data, out)
	}
	return x.group > 0 && x.group%x.lanes != 0 && x.group < x.extents[x.out]
}

// findWeights reports whether the other operand is a constant, of which outputs and terms each index a dimension.
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

// setAccesses notes what the reduction reads, and what feeds it.
func (x *folds) setAccesses(s *schedule.Schedule, acc *schedule.Stage, data *expr.Load) {
	x.accesses = Accesses(s, acc, []*expr.Tensor{s.ConstantTensor(x.weights.constant)})
	if x.group > 1 {
		a := &x.accesses[slices.IndexFunc(expr.Loads(acc.Body), func(l *expr.Load) bool { return l == data })]
		for d, row := range a.Dims {
			row[x.out] = 0
			a.Groups = append(a.Groups, Between(data.Index[d], acc.Axes[x.out]))
		}
		a.Group, a.Grouped = x.group, x.out
	}
	for _, f := range x.unit.Feeds {
		x.fed = x.fed || s.Stages[f].Tensor == data.Tensor
	}
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

// factors are the numbers of terms that may be lanes, the most first.
func (x *folds) factors() (list []int64) {
	for n := x.most; n >= leastTerms; n /= 2 {
		if len(x.tiles(n)) > 0 {
			list = append(list, n)
		}
	}
	return list
}

// tiles are the numbers of outputs that a tile may have with so many terms in lanes: vectors of them are whole, and it
// is known which groups they are in; what is left at the end is a power of two, too. Fewer terms have fewer of them.
func (x *folds) tiles(factor int64) (list []int64) {
	for n := x.lanes; n > 1; n /= 2 {
		rest := x.extents[x.out] % n
		if n*factor >= x.lanes && n <= x.extents[x.out] && rest&(rest-1) == 0 && (n%x.group == 0 || x.group%n == 0) {
			list = append(list, n)
		}
	}
	return list
}

// vectors are the partial sums of a position.
func (x *folds) vectors(outputs, factor int64) int64 { return sketch.CeilDiv(outputs*factor, x.lanes) }

// open are the knobs.
func (x *folds) open() []space.Parameter[foldsParameters] {
	type p = foldsParameters
	open := []space.Parameter[p]{
		sketch.Knob("fw", func(p *p) *int64 { return &p.columns }, sketch.AtMost(x.extents[x.col], 1, 2, 3, 4, 6, 7, 8, 12, 14)...),
		sketch.Knob("fo", func(p *p) *int64 { return &p.outputs }, x.tiles(x.most)...),
		sketch.Knob("ff", func(p *p) *int64 { return &p.factor }, x.factors()...),
		sketch.Knob("fb", func(p *p) *int64 { return &p.rows }, sketch.AtMost(x.extent(x.row), 1, 2, 4, 7, 8, 14, 16, 28, 56, 1024)...),
		sketch.Knob("ford", func(p *p) *int64 { return &p.order }, 0, 1),
		sketch.Unrolling(sketch.Knob("fku", func(p *p) *int64 { return &p.unroll }, sketch.AtMost(x.steps(leastTerms), 1, 2, 4, 8, 16, 32)...)),
	}
	if x.fed {
		open = append(open, sketch.Knob("ffeed", func(p *p) *int64 { return &p.feed }, sketch.Inline, sketch.Alone, sketch.InBlock, sketch.InTile))
	}
	return space.Worth(open)
}

// seeds are tiles that fill the registers.
func (x *folds) seeds() (list []space.Candidate[foldsParameters]) {
	for _, factor := range x.factors() {
		for _, n := range x.tiles(factor) {
			for _, columns := range []int64{1, 2, 3, 4, 7, 14} {
				for _, feed := range []int64{sketch.Inline, sketch.Alone} {
					p := foldsParameters{columns: columns, outputs: n, factor: factor, rows: 7, unroll: 4, feed: feed}
					list = append(list, space.Candidate[foldsParameters]{By: FoldAlgorithm, Parameters: p})
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

// steps is how many steps a sum takes.
func (x *folds) steps(factor int64) int64 { return sketch.Product(x.reduce) / factor }

// sizes are the numbers that follow from the parameters.
func (x *folds) sizes(p foldsParameters) foldsParameters {
	if p.factor == 0 { // that is no knob
		p.factor = x.factors()[0]
	}
	if p.outputs == 0 { // neither
		p.outputs = x.tiles(p.factor)[0]
	}
	p.columns, p.unroll = max(1, p.columns), max(1, p.unroll)
	p.rows = sketch.DivisorAtMost(x.extent(x.row), max(1, p.rows))
	return p
}

// Legal implements space.Structure.
func (x *folds) Legal(p foldsParameters) error {
	z := x.sizes(p)
	if !slices.Contains(x.tiles(z.factor), z.outputs) || z.columns > x.extents[x.col] {
		return fmt.Errorf("space: a tile of %dx%d outputs by %d terms cuts through vectors, or groups of %d", z.columns, z.outputs, z.factor, x.group)
	}
	r := RegisterTile{Rows: z.columns, Vectors: x.vectors(z.outputs, z.factor), Unroll: z.unroll, Whole: z.unroll >= x.steps(z.factor)}
	r.More = 2 - r.Vectors // constants come from memory
	return r.Legal(x.target)
}
