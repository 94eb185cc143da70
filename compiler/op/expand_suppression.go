package op

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var expandSuppressionDefs = []Def{def("NonMaxSuppression", 2, 5, (*expansion).nonMaxSuppression)}

// maxSuppressions limits the boxes selected per class, each by a round of kernels.
const maxSuppressions = 2048

// nonMaxSuppression selects in each round the best box of each class of each batch, and removes those that overlap
// it. The result has rows of batch, class and box. A negative number of boxes means none, a large one all.
func (e *expansion) nonMaxSuppression() []*Item {
	boxes, scores := e.tensor(0), e.tensor(1)
	if b, s := boxes.Shape, scores.Shape; b.Rank() != 3 || s.Rank() != 3 || !b.At(2).Is(4) || b.At(0) != s.At(0) || b.At(1) != s.At(2) ||
		boxes.DType != scores.DType || !boxes.DType.IsFloat() {
		e.fail("boxes %v and scores %v do not fit", boxes.Type, scores.Type)
	}
	wanted, shape := e.parameter(2, array.Int64, 0), scores.Shape
	rounds := shape.Max()[2] // some find no box if there are fewer
	if wanted.Const != nil {
		rounds = max(0, min(rounds, wanted.Const.Int(0)))
	}
	switch {
	case rounds > maxSuppressions:
		e.fail("up to %d boxes of a class would be selected, and %d are supported: make input 2 (max_output_boxes_per_class) a smaller constant",
			rounds, maxSuppressions)
	case rounds == 0 || shape.IsEmpty():
		return only(e.known(array.New(array.Int64, 0, 3)))
	}
	chosen := e.suppressed(e.corners(boxes), scores, rounds)
	order := e.reshape(e.positions(extent.Fixed(rounds)), extent.Fixed(1, 1, rounds))
	there := e.op(And, nil, e.op("Not", nil, e.op(Less, nil, chosen, e.scalar(array.Int64, 0))), e.op(Less, nil, order, wanted))
	mask := e.flat(there)
	return only(e.counted(e.selectedBoxes(chosen, e.op(Positions, nil, mask)), 0, e.trues(mask)))
}

// parameter returns input k, a single number, as a scalar; def if it was omitted.
func (e *expansion) parameter(k int, d array.DType, def float64) *Value {
	v := e.tensor(k)
	if v == nil {
		return e.scalar(d, def)
	}
	if !v.Shape.Elements().Is(1) {
		e.fail("input %d, %v, is not one number", k, v.Type)
	}
	return e.reshape(e.cast(d, v), extent.Fixed())
}

// corners returns the corners of the boxes, in either format.
func (e *expansion) corners(boxes *Value) *Value {
	format := e.node.Int("center_point_box", 0)
	if format != 0 && format != 1 {
		e.fail("center_point_box %d is neither 0 nor 1", format)
	}
	return e.op(Corners, attributes{intOf("center_point_box", format)}, boxes)
}

// candidates are the remaining boxes of each class: their scores, -inf for removed ones, their corners, and their
// numbers unless these are 0, 1, 2 ...
type candidates struct{ scores, corners, numbers *Value }

// suppressed returns the boxes selected in each round, (batch, classes, rounds); -1 if none is left. If few of many
// boxes are selected, they come from a pool of those with the best scores, and from all only if a pool was too small.
func (e *expansion) suppressed(corners, scores *Value, rounds int64) *Value {
	limit := e.parameter(3, scores.DType, 0)
	smallest := e.parameter(4, scores.DType, math.Inf(-1))
	left := e.op(Where, nil, e.op(Greater, nil, scores, smallest), scores, e.scalar(scores.DType, math.Inf(-1)))
	all := func() *Value { return e.rounds(candidates{left, corners, nil}, corners, limit, rounds) }
	if boxes, ok := scores.Shape.At(2).Const(); !ok || !pools(boxes, rounds) {
		return all()
	}
	pool, cut := e.pool(left, corners)
	some := e.rounds(pool, corners, limit, rounds)
	none := e.op(Less, nil, e.slice(some, 2, rounds-1, rounds), e.scalar(array.Int64, 0))
	short := e.op(And, nil, none, e.op(Greater, nil, cut, e.scalar(scores.DType, math.Inf(-1))))
	again := e.op(Greater, nil, e.trues(e.flat(short)), e.scalar(array.Int64, 0))
	return e.op(Where, nil, again, all(), some) // the condition first, so that it is known before its uses
}

// rounds selects one box of each class after the other, and removes those that overlap it.
func (e *expansion) rounds(c candidates, corners, limit *Value, rounds int64) *Value {
	chosen := make([]*Value, rounds)
	for k := range chosen {
		best := e.op(BestBox, nil, c.scores, c.numbers)
		chosen[k] = e.op(Unsqueeze, nil, best, e.ints(2))
		if k+1 < len(chosen) {
			c.scores = e.op(Suppress, nil, c.scores, c.corners, best, e.op(BoxCorners, nil, corners, best), limit, c.numbers)
		}
	}
	return e.cast(array.Int64, e.op(Concat, attributes{intOf("axis", 2)}, chosen...))
}

// A pool holds the best poolBest of each poolGroup boxes; ranking within small groups takes few comparisons. Of
// 3234 boxes of SSD with random weights, up to 159 are examined until 100 are selected. In the class with the
// fewest, 181 are above the cut, against 65 with the best 4. A larger pool exceeds the second-level cache: with the
// best 6, a round over 90 classes took 85 µs, and 33 with the best 4.
const poolGroup, poolBest = 16, 5

// pools reports whether a pool pays: it is much smaller than the set of boxes, and likely to suffice.
func pools(boxes, rounds int64) bool {
	return boxes >= 1024 && 4*rounds <= poolBest*boxes/poolGroup
}

// pool returns the boxes of each class with scores above a cut, and the highest score of the others, (batch, classes,
// 1). Neighbours have similar scores and belong to different groups: a group holds boxes at a fixed stride.
func (e *expansion) pool(scores, corners *Value) (candidates, *Value) {
	each, boxes := scores.Shape.Slice(0, 2), fixedAt(scores, 2)
	with := func(size ...int64) extent.Shape { return extent.Concat(each, extent.Fixed(size...)) }
	out := e.scalar(scores.DType, math.Inf(-1))
	groups := (boxes + poolGroup - 1) / poolGroup
	if more := poolGroup*groups - boxes; more > 0 {
		scores = e.op(Concat, attributes{intOf("axis", 2)}, scores, e.expand(out, with(more)))
	}
	grouped := e.reshape(scores, with(poolGroup, groups))
	best, at := e.best(grouped, 2, poolBest+1)
	flat := func(v *Value, ranks int64) *Value { return e.reshape(v, with(ranks*groups)) }
	cut := e.op(ReduceMax, nil, flat(e.slice(best, 2, poolBest, poolBest+1), 1), e.ints(2))
	best = flat(e.slice(best, 2, 0, poolBest), poolBest)
	place := e.op(Mul, nil, e.slice(at, 2, 0, poolBest), e.scalar(array.Int64, float64(groups)))
	numbers := e.cast(array.Int32, flat(e.op(Add, nil, place, e.positions(extent.Fixed(groups))), poolBest))
	return candidates{
		scores:  e.op(Where, nil, e.op(Greater, nil, best, cut), best, out),
		corners: e.op(BoxCorners, nil, corners, numbers), numbers: numbers,
	}, cut
}

// best returns the largest elements along an axis in descending order, with their positions.
func (e *expansion) best(v *Value, axis, count int64) (values, places *Value) {
	n := Node{Name: e.node.Name, Op: TopK, Opset: expandedOpset, Attrs: map[string]*onnx.Attribute{"axis": intOf("axis", axis)}, Outputs: 2}
	in := []*Value{v, e.ints(count)}
	values = e.add(n, in)
	n.Output = 1
	return values, e.add(n, in)
}

// selectedBoxes returns the rows of the result for positions in the selection.
func (e *expansion) selectedBoxes(chosen, at *Value) *Value {
	classes, rounds := chosen.Shape.At(1), chosen.Shape.At(2)
	batch := e.op(Div, nil, at, e.count(classes.Times(rounds)))
	class := e.op("Mod", nil, e.op(Div, nil, at, e.count(rounds)), e.count(classes))
	box := e.op(Gather, attributes{intOf("axis", 0)}, e.flat(chosen), at)
	columns := []*Value{batch, class, box}
	for k, c := range columns {
		columns[k] = e.op(Unsqueeze, nil, c, e.ints(1))
	}
	return e.op(Concat, attributes{intOf("axis", 1)}, columns...)
}
