package expand

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
)

var suppressionDefs = []op.Def{def("NonMaxSuppression", 2, 5, (*expansion).nonMaxSuppression)}

// maxSuppressions bounds the boxes that are selected of a class, each by a round of kernels.
const maxSuppressions = 2048

// nonMaxSuppression selects in each round the best box of each class of each batch, and takes out those that overlap
// it. The result has rows of batch, class and box. A negative number of boxes is none, a large one all that there are.
func (e *expansion) nonMaxSuppression() []*op.Item {
	boxes, scores := e.tensor(0), e.tensor(1)
	if e.failed() || !e.boxesFit(boxes, scores) {
		return nil
	}
	wanted := e.parameter(2, array.Int64, 0)
	rounds := scores.Shape[2]
	if e.failed() {
		return nil
	}
	if wanted.Const != nil {
		rounds = max(0, min(rounds, wanted.Const.Int(0)))
	}
	switch {
	case rounds > maxSuppressions:
		e.fail("up to %d boxes of a class would be selected, and %d are supported: make input 2 (max_output_boxes_per_class) a smaller constant",
			rounds, maxSuppressions)
		return nil
	case rounds*scores.Shape[0]*scores.Shape[1] == 0:
		return only(e.known(array.New(array.Int64, 0, 3)))
	}
	chosen := e.suppressed(e.corners(boxes), scores, rounds)
	order := e.reshape(e.counted(rounds), 1, 1, rounds)
	there := e.op(op.And, nil, e.op("Not", nil, e.op(op.Less, nil, chosen, e.scalar(array.Int64, 0))), e.op(op.Less, nil, order, wanted))
	mask := e.reshape(there, -1)
	return only(e.open(e.selectedBoxes(chosen, e.op(op.Positions, nil, mask)), 0, e.trues(mask)))
}

func (e *expansion) boxesFit(boxes, scores *op.Value) bool {
	b, s := boxes.Shape, scores.Shape
	if len(b) != 3 || len(s) != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2] || boxes.DType != scores.DType || !boxes.DType.IsFloat() {
		e.fail("boxes %v and scores %v do not fit", boxes.Type, scores.Type)
	}
	if boxes.Open != nil || scores.Open != nil {
		e.fail("the number of boxes depends on data, which is not supported here: make boxes and scores outputs of the model, and end the model there")
	}
	return !e.failed()
}

// parameter is input k, one number, as a scalar; def where it was left out.
func (e *expansion) parameter(k int, d array.DType, def float64) *op.Value {
	v := e.tensor(k)
	if v == nil || e.failed() {
		return e.scalar(d, def)
	}
	if array.Elements(v.Shape) != 1 {
		e.fail("input %d, %v, is not one number", k, v.Type)
	}
	return e.reshape(e.cast(d, v))
}

// corners are those of the boxes, in any of both formats.
func (e *expansion) corners(boxes *op.Value) *op.Value {
	format := e.node.Int("center_point_box", 0)
	if format != 0 && format != 1 {
		e.fail("center_point_box %d is neither 0 nor 1", format)
	}
	return e.op(op.Corners, attributes{intOf("center_point_box", format)}, boxes)
}

// suppressed are the boxes that each round selects, (batch, classes, rounds); -1 where none is left.
func (e *expansion) suppressed(corners, scores *op.Value, rounds int64) *op.Value {
	limit := e.parameter(3, scores.DType, 0)
	out := e.scalar(scores.DType, math.Inf(-1))
	least := e.parameter(4, scores.DType, math.Inf(-1))
	left := e.op(op.Where, nil, e.op(op.Greater, nil, scores, least), scores, out)
	chosen := make([]*op.Value, rounds)
	for k := range chosen {
		best := e.op(op.BestBox, nil, left)
		chosen[k] = e.op(op.Unsqueeze, nil, best, e.ints(2))
		if k+1 < len(chosen) {
			left = e.op(op.Suppress, nil, left, corners, best, e.op(op.BoxCorners, nil, corners, best), limit)
		}
	}
	return e.cast(array.Int64, e.op(op.Concat, attributes{intOf("axis", 2)}, chosen...))
}

// selectedBoxes are the rows of the result that positions in what was chosen stand for.
func (e *expansion) selectedBoxes(chosen, at *op.Value) *op.Value {
	if e.failed() {
		return nil
	}
	s := chosen.Shape
	divided := func(v *op.Value, by int64) *op.Value { return e.op(op.Div, nil, v, e.scalar(array.Int64, float64(by))) }
	batch := divided(at, s[1]*s[2])
	class := e.op("Mod", nil, divided(at, s[2]), e.scalar(array.Int64, float64(s[1])))
	box := e.op(op.Gather, attributes{intOf("axis", 0)}, e.reshape(chosen, -1), at)
	columns := []*op.Value{batch, class, box}
	for k, c := range columns {
		columns[k] = e.op(op.Unsqueeze, nil, c, e.ints(1))
	}
	return e.op(op.Concat, attributes{intOf("axis", 1)}, columns...)
}
