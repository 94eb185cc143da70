package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/extent"
)

var expandNormDefs = []Def{
	def("GroupNormalization", 3, 3, (*expansion).groupNormalization),
	def("LpNormalization", 1, 1, (*expansion).lpNormalization),
	def("MeanVarianceNormalization", 1, 1, (*expansion).meanVarianceNormalization),
	def("Dropout", 1, 3, (*expansion).dropout),
}

// batchNormForm is for training mode. Older operator sets do not express the mode and are rejected.
var batchNormForm = Form{
	Name: BatchNormalization, Expand: expand((*expansion).batchNormalization),
	Applies: func(*Node, []*Item) bool { return true },
}

// batchNormalization normalises by the given statistics or, in training mode, by those of the batch; then outputs 1
// and 2 are the running mean and variance.
func (e *expansion) batchNormalization() []*Item {
	in := e.tensors()
	if e.node.Int("training_mode", 0) == 0 {
		if len(e.used) > 1 && slices.Contains(e.used[1:], true) {
			e.fail("training mode of older operator sets is not supported: export the model for inference")
		}
		return only(e.itself(in...))
	}
	x := in[0]
	if x.Shape.Rank() < 2 {
		e.fail("input %v has no channel axis", x.Type)
	}
	axes := []int64{0}
	for k := 2; k < x.Shape.Rank(); k++ {
		axes = append(axes, int64(k))
	}
	all, flat := e.ints(axes...), attributes{intOf("keepdims", 0)}
	mean := e.op(ReduceMean, flat, x, all)
	centred := e.op(Sub, nil, x, e.along(mean, 1, int64(x.Shape.Rank())))
	variance := e.op(ReduceMean, flat, e.op(Mul, nil, centred, centred), all)
	epsilon := attributes{floatOf("epsilon", e.node.Float("epsilon", 1e-5))}
	y := e.op(e.node.Op, epsilon, x, in[1], in[2], mean, variance)
	return []*Item{tensorItem(y), tensorItem(e.running(in[3], mean)), tensorItem(e.running(in[4], variance))}
}

// running moves a statistic towards that of the batch.
func (e *expansion) running(before, batch *Value) *Value {
	momentum := e.node.Float("momentum", 0.9)
	old := e.op(Mul, nil, before, e.scalar(before.DType, momentum))
	return e.op(Add, nil, old, e.op(Mul, nil, e.cast(before.DType, batch), e.scalar(before.DType, 1-momentum)))
}

// groupNormalization normalises groups of channels: layer normalisation of the input as [n, groups, channels of a
// group, ...]. Scale and bias are per group before operator set 21, and per channel since.
func (e *expansion) groupNormalization() []*Item {
	x, scale, bias := e.tensor(0), e.tensor(1), e.tensor(2)
	groups := e.node.Int("num_groups", 0)
	if x.Shape.Rank() < 2 || groups < 1 || fixedAt(x, 1)%groups != 0 {
		e.fail("input %v does not have %d groups of channels", x.Type, groups)
	}
	count := fixedAt(x, 1)
	per := count / groups
	if e.node.Opset < 21 {
		count = groups
	}
	rank := x.Shape.Rank()
	grouped := extent.Concat(x.Shape.Slice(0, 1), extent.Fixed(groups, per), x.Shape.Slice(2, rank))
	parameter := func(v *Value) *Value {
		if !v.Shape.Equal(extent.Fixed(count)) {
			e.fail("scale or bias %v does not have %d elements", v.Type, count)
		}
		return e.reshape(v, extent.Concat(extent.Fixed(1, groups, count/groups), ones(rank-2)))
	}
	attrs := attributes{intOf("axis", 2), floatOf("epsilon", e.node.Float("epsilon", 1e-5))}
	y := e.op(LayerNormalization, attrs, e.reshape(x, grouped), parameter(scale), parameter(bias))
	return only(e.reshape(y, x.Shape))
}

// lpNormalization divides by the norm along an axis; zeros stay zeros.
func (e *expansion) lpNormalization() []*Item {
	x := e.tensor(0)
	name := ""
	switch p := e.node.Int("p", 2); p {
	case 1:
		name = ReduceL1
	case 2:
		name = ReduceL2
	default:
		e.fail("norm %d is not supported: use 1 or 2", p)
	}
	norm := e.op(name, nil, x, e.ints(e.node.Int("axis", -1)))
	none := e.op(Equal, nil, norm, e.scalar(x.DType, 0))
	return only(e.op(Div, nil, x, e.op(Where, nil, none, e.scalar(x.DType, 1), norm)))
}

// meanVarianceNormalization is (x-mean)/(deviation+1e-9), by its definition.
func (e *expansion) meanVarianceNormalization() []*Item {
	x := e.tensor(0)
	axes := e.ints(e.node.Ints("axes", []int64{0, 2, 3})...)
	centred := e.op(Sub, nil, x, e.op(ReduceMean, nil, x, axes))
	variance := e.op(ReduceMean, nil, e.op(Mul, nil, centred, centred), axes)
	deviation := e.op(Add, nil, e.op(Sqrt, nil, variance), e.scalar(x.DType, 1e-9))
	return only(e.op(Div, nil, centred, deviation))
}

// dropout is the identity at inference, and its mask keeps everything; training mode requires ratio 0.
func (e *expansion) dropout() []*Item {
	x, training := e.tensor(0), e.tensor(2)
	ratio := e.tensor(1)
	none := ratio != nil && ratio.Const != nil && ratio.Const.Len() == 1 && ratio.Const.Float(0) == 0
	if is, known := e.truth(training); training != nil && (is || !known) && !none {
		e.fail("dropout in training mode draws random numbers: export the model for inference")
	}
	if !e.wants(1) {
		return only(x)
	}
	kept := e.truthOf(true)
	if e.node.Opset < 10 {
		kept = e.scalar(x.DType, 1) // the mask had the type of the data
	}
	return []*Item{tensorItem(x), tensorItem(e.expand(kept, x.Shape))}
}
