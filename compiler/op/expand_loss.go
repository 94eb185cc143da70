package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var lossDefs = []Def{
	def("NegativeLogLikelihoodLoss", 2, 3, func(e *expansion) []*Item {
		return only(e.likelihoodLoss(e.tensor(0), e.tensor(1), e.tensor(2)))
	}),
	def("SoftmaxCrossEntropyLoss", 2, 3, func(e *expansion) []*Item {
		scores := e.tensor(0)
		logs := e.op(LogSoftmax, attributes{intOf("axis", 1)}, scores)
		return []*Item{tensorItem(e.likelihoodLoss(logs, e.tensor(1), e.tensor(2))), tensorItem(logs)}
	}),
}

// likelihoodLoss is minus the logarithm x[n,target[n,...],...] of each target's class times the class's weight,
// without targets equal to the attribute "ignore_index"; reduced by the attribute "reduction", where the mean is
// weighted.
func (e *expansion) likelihoodLoss(x, target, weight *Value) *Value {
	e.checkClasses(x, target, weight)
	index := target
	var counts *Value // of each target: its weight, zero when it is ignored
	if a := e.node.Attrs["ignore_index"]; a != nil {
		ignored := e.op(Equal, nil, target, e.scalar(target.DType, float64(e.node.Int("ignore_index", 0))))
		index = e.op(Where, nil, ignored, e.scalar(target.DType, 0), target)
		one := e.scalar(x.DType, 1)
		if weight != nil {
			one = e.op(Gather, nil, weight, index)
		}
		counts = e.op(Where, nil, ignored, e.scalar(x.DType, 0), one)
	} else if weight != nil {
		counts = e.op(Gather, nil, weight, index)
	}
	column := e.op(Unsqueeze, nil, index, e.ints(1))
	picked := e.op(GatherElements, attributes{intOf("axis", 1)}, x, column)
	loss := e.op(Neg, nil, e.op(Squeeze, nil, picked, e.ints(1)))
	if counts != nil {
		loss = e.op(Mul, nil, loss, counts)
	}
	return e.reduceLoss(loss, counts)
}

func (e *expansion) checkClasses(x, target, weight *Value) {
	if x.Shape.Rank() < 2 || !target.Shape.Equal(extent.Concat(x.Shape.Slice(0, 1), x.Shape.Slice(2, x.Shape.Rank()))) {
		e.fail("scores %v and targets %v do not fit", x.Type, target.Type)
	}
	if weight != nil && (weight.DType != x.DType || !weight.Shape.Equal(x.Shape.Slice(1, 2))) {
		e.fail("weights %v do not fit scores %v", weight.Type, x.Type)
	}
	if target.DType != array.Int32 && target.DType != array.Int64 {
		e.fail("targets %v are not i32 or i64", target.Type)
	}
}

func (e *expansion) reduceLoss(loss, counts *Value) *Value {
	all := attributes{intOf("keepdims", 0)}
	switch reduction := e.node.Text("reduction", "mean"); reduction {
	case "none":
		return loss
	case "sum":
		return e.op(ReduceSum, all, loss)
	case "mean":
		if counts == nil {
			return e.op(ReduceMean, all, loss)
		}
		return e.op(Div, nil, e.op(ReduceSum, all, loss), e.op(ReduceSum, all, counts))
	default:
		e.fail("reduction %q is not none, sum or mean", reduction)
		return nil
	}
}
