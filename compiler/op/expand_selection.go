package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
)

// selections are forms of operators that select by data. Their results are open: their extent is the number of
// selected elements, bounded by that of the candidates.
var selections = []Form{
	{Name: "NonZero", Expand: expand((*expansion).nonZero), Applies: func(_ *Node, in []*Item) bool { return isComputed(in, 0) }},
	{Name: "Compress", Expand: expand((*expansion).compress), Applies: func(_ *Node, in []*Item) bool {
		return isComputed(in, 1) || isOpen(in, 0)
	}},
	{Name: TopK, Expand: expand((*expansion).topK), Applies: func(_ *Node, in []*Item) bool {
		return isComputed(in, 1) || isOpen(in, 0)
	}},
	{Name: Shape, Expand: expand((*expansion).shape), Applies: func(_ *Node, in []*Item) bool { return isOpen(in, 0) }},
}

// nonZero returns a column for each nonzero element: its index.
func (e *expansion) nonZero() []*Item {
	x := e.tensor(0)
	if e.failed() {
		return nil
	}
	mask := x
	if x.DType != array.Bool {
		mask = e.op("Not", nil, e.op(Equal, nil, x, e.scalar(x.DType, 0)))
	}
	mask = e.reshape(e.closed(mask, e.scalar(array.Bool, 0)), -1)
	found := e.op(Positions, nil, mask)
	rows := make([]*Value, x.Shape.Rank())
	for k, extent := range x.Shape.Fixed() {
		row := e.op(Div, nil, found, e.scalar(array.Int64, float64(array.Elements(x.Shape.Fixed()[k+1:]))))
		row = e.op("Mod", nil, row, e.scalar(array.Int64, float64(extent)))
		rows[k] = e.op(Unsqueeze, nil, row, e.ints(0))
	}
	if len(rows) == 0 {
		e.fail("input %v has no axes, and so no indices", x.Type)
		return nil
	}
	return only(e.open(e.op(Concat, attributes{intOf("axis", 0)}, rows...), 1, e.trues(mask)))
}

// compress selects by a vector of bools on an axis, or among all elements.
func (e *expansion) compress() []*Item {
	x, condition := e.tensor(0), e.tensor(1)
	if e.failed() {
		return nil
	}
	axis := int64(0)
	if e.node.Attrs["axis"] == nil {
		x = e.reshape(x, -1)
	} else if axis = e.axis(e.node.Int("axis", 0), x.Shape.Rank()); e.failed() {
		return nil
	}
	switch {
	case e.failed():
		return nil
	case condition.DType != array.Bool || condition.Shape.Rank() != 1 || condition.Shape.Fixed()[0] > x.Shape.Fixed()[axis]:
		e.fail("condition %v does not fit %d elements", condition.Type, x.Shape.Fixed()[axis])
		return nil
	case x.Open != nil && (int64(x.Open.Axis) != axis || condition.Open == nil || condition.Open.Count != x.Open.Count):
		e.fail("the extent of input 0 depends on data, and need not be that of the condition: that is not supported")
		return nil
	}
	mask := e.closed(condition, e.scalar(array.Bool, 0))
	chosen := e.op(Gather, attributes{intOf("axis", axis)}, e.closed(x, e.scalar(x.DType, 0)), e.op(Positions, nil, mask))
	return only(e.open(chosen, int(axis), e.trues(mask)))
}

// topK sorts an axis as far as k may reach. A computed k is clamped to the range from zero to the extent.
func (e *expansion) topK() []*Item {
	x, k := e.tensor(0), e.tensor(1)
	if e.failed() {
		return nil
	}
	axis := e.axis(e.node.Int("axis", -1), x.Shape.Rank())
	if k != nil && array.Elements(k.Shape.Fixed()) != 1 {
		e.fail("input 1 (k), %v, is not one number", k.Type)
	}
	if e.failed() {
		return nil
	}
	most, limit := k, e.scalar(array.Int64, float64(x.Shape.Fixed()[axis]))
	if k != nil && k.Const == nil {
		most = e.ints(x.Shape.Fixed()[axis])
	}
	var count *Value
	switch open := x.Open; {
	case open != nil && int64(open.Axis) != axis:
		e.fail("the extent of input 0 depends on data on another axis than the one that is sorted: that is not supported")
		return nil
	case open != nil:
		limit = open.Count
		x = e.closed(x, e.known(Limit(x.DType, e.node.Int("largest", 1) == 0)))
	}
	if k != nil {
		count = e.op(Max, nil, e.scalar(array.Int64, 0), e.op(Min, nil, e.reshape(e.cast(array.Int64, k)), limit))
	}
	items := make([]*Item, 2)
	for output := range items {
		if !e.wants(output) {
			continue
		}
		n := *e.node
		n.Output = output
		items[output] = tensorItem(e.open(e.add(n, []*Value{x, most}), int(axis), count))
	}
	return items
}

// shape returns the count where the extent depends on data.
func (e *expansion) shape() []*Item {
	x := e.tensor(0)
	rank := int64(x.Shape.Rank())
	begin, end := e.clamped(e.node.Int("start", 0), rank), e.clamped(e.node.Int("end", rank), rank)
	parts := []*Value{}
	for k := begin; k < end && !e.failed(); k++ {
		part := e.ints(x.Shape.Fixed()[k])
		if int(k) == x.Open.Axis {
			part = e.reshape(x.Open.Count, 1)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return only(e.known(array.New(array.Int64, 0)))
	}
	return only(e.op(Concat, attributes{intOf("axis", 0)}, parts...))
}

// clamped returns a position, possibly counted from the end, clamped to the range from zero to the extent.
func (e *expansion) clamped(v, extent int64) int64 {
	if v < 0 {
		v += extent
	}
	return max(0, min(v, extent))
}

// axis returns an axis, possibly counted from the end.
func (e *expansion) axis(v int64, rank int) int64 {
	if v < -int64(rank) || v >= int64(rank) {
		e.fail("axis %d of a value of rank %d", v, rank)
		return 0
	}
	return (v + int64(rank)) % int64(rank)
}
