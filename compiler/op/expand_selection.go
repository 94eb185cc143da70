package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// selections are forms of operators that select by data. The extent of their results is open: it is the number of
// selected elements, bounded by that of the candidates.
var selections = []Form{
	{Name: "NonZero", Expand: expand((*expansion).nonZero), Applies: func(_ *Node, in []*Item) bool { return isComputed(in, 0) }},
	{Name: "Compress", Expand: expand((*expansion).compress), Applies: func(_ *Node, in []*Item) bool {
		return isComputed(in, 1)
	}},
	{Name: TopK, Expand: expand((*expansion).topK), Applies: func(_ *Node, in []*Item) bool {
		return isComputed(in, 1) && in[1].Tensor.Numbers == nil || isCounted(in, 0)
	}},
}

// nonZero returns a column for each nonzero element: its index.
func (e *expansion) nonZero() []*Item {
	x := e.tensor(0)
	mask := x
	if x.DType != array.Bool {
		mask = e.op("Not", nil, e.op(Equal, nil, x, e.scalar(x.DType, 0)))
	}
	mask = e.flat(mask)
	found := e.op(Positions, nil, mask)
	rows := make([]*Value, x.Shape.Rank())
	for k, size := range x.Shape.Extents() {
		row := e.op(Div, nil, found, e.count(x.Shape.Slice(k+1, x.Shape.Rank()).Elements()))
		row = e.op("Mod", nil, row, e.count(size))
		rows[k] = e.op(Unsqueeze, nil, row, e.ints(0))
	}
	if len(rows) == 0 {
		e.fail("input %v has no axes, and so no indices", x.Type)
	}
	return only(e.counted(e.op(Concat, attributes{intOf("axis", 0)}, rows...), 1, e.trues(mask)))
}

// compress selects by a vector of bools on an axis, or among all elements.
func (e *expansion) compress() []*Item {
	x, condition := e.tensor(0), e.tensor(1)
	axis := int64(0)
	if e.node.Attrs["axis"] == nil {
		x = e.flat(x)
	} else {
		axis = e.axis(e.node.Int("axis", 0), x.Shape.Rank())
	}
	if condition.DType != array.Bool || condition.Shape.Rank() != 1 || !condition.Shape.At(0).AtMost(x.Shape.At(int(axis))) {
		e.fail("condition %v does not fit %v elements", condition.Type, x.Shape.At(int(axis)))
	}
	chosen := e.op(Gather, attributes{intOf("axis", axis)}, x, e.op(Positions, nil, condition))
	return only(e.counted(chosen, axis, e.trues(condition)))
}

// topK sorts an axis as far as k may reach. k is clamped to the range from zero to the extent if either depends on
// data.
func (e *expansion) topK() []*Item {
	x, k := e.tensor(0), e.tensor(1)
	axis := e.axis(e.node.Int("axis", -1), x.Shape.Rank())
	if !k.Shape.Elements().Is(1) {
		e.fail("input 1 (k), %v, is not one number", k.Type)
	}
	size := x.Shape.At(int(axis))
	if k.Const != nil {
		k = e.extents(extent.Of(k.Const.Int(0)).Least(size).Most(extent.Of(0)))
		return []*Item{tensorItem(e.result(0, x, k)), tensorItem(e.result(1, x, k))}
	}
	count := e.op(Max, nil, e.scalar(array.Int64, 0), e.op(Min, nil, e.reshape(e.cast(array.Int64, k), extent.Fixed()), e.count(size)))
	all := e.extents(size)
	return []*Item{tensorItem(e.counted(e.result(0, x, all), axis, count)), tensorItem(e.counted(e.result(1, x, all), axis, count))}
}

// result returns a result of the node's own operator; nil if it is not read.
func (e *expansion) result(output int, in ...*Value) *Value {
	if !e.wants(output) {
		return nil
	}
	n := *e.node
	n.Output = output
	return e.add(n, in)
}

// axis returns an axis, possibly counted from the end.
func (e *expansion) axis(v int64, rank int) int64 {
	if v < -int64(rank) || v >= int64(rank) {
		e.fail("axis %d of a value of rank %d", v, rank)
	}
	return (v + int64(rank)) % int64(rank)
}
