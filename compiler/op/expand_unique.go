package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// uniqueForm compares all slices with one another. Their number bounds that of the distinct ones.
var uniqueForm = Form{
	Name: "Unique", Expand: expand((*expansion).unique),
	Applies: func(_ *Node, in []*Item) bool { return isComputed(in, 0) },
}

// unique returns the distinct slices along an axis, or the distinct elements; then the first position of each, the
// number of the distinct slice for each slice, and the multiplicities.
func (e *expansion) unique() []*Item {
	x := e.tensor(0)
	axis := int64(0)
	if e.node.Attrs["axis"] == nil {
		x = e.flat(x)
	} else {
		axis = e.axis(e.node.Int("axis", 0), x.Shape.Rank())
	}
	rows := e.rows(x, int(axis))
	sorted := attributes{intOf("sorted", e.node.Int("sorted", 1))}
	first := e.op(UniqueFirst, nil, rows)
	which := e.op(UniqueRank, sorted, rows, first)
	size := x.Shape.At(int(axis))
	row, column := extent.ShapeOf(extent.Of(1), size), extent.ShapeOf(size, extent.Of(1))
	places := e.positions(extent.ShapeOf(size))
	isFirst := e.op(Equal, nil, first, places)
	count := e.trues(isFirst)
	// Row k of these matrices belongs to the k-th distinct slice.
	members := e.op(Equal, nil, e.reshape(which, row), e.reshape(places, column))
	firsts := e.op(And, nil, members, e.reshape(isFirst, row))
	flat := attributes{intOf("keepdims", 0)}
	position := e.op(ReduceMax, flat, e.op(Where, nil, firsts, places, e.scalar(array.Int64, 0)), e.ints(1))
	multiplicity := e.op(ReduceSum, flat, e.cast(array.Int64, members), e.ints(1))
	chosen := e.op(Gather, attributes{intOf("axis", axis)}, x, position)
	return []*Item{
		tensorItem(e.counted(chosen, axis, count)), tensorItem(e.counted(position, 0, count)),
		tensorItem(which), tensorItem(e.counted(multiplicity, 0, count)),
	}
}

// rows returns the slices of a value along an axis as rows of a matrix.
func (e *expansion) rows(x *Value, axis int) *Value {
	perm := []int64{int64(axis)}
	for k := range x.Shape.Rank() {
		if k != axis {
			perm = append(perm, int64(k))
		}
	}
	others := extent.Concat(x.Shape.Slice(0, axis), x.Shape.Slice(axis+1, x.Shape.Rank())).Elements()
	return e.reshape(e.op(Transpose, attributes{intsOf("perm", perm...)}, x), extent.ShapeOf(x.Shape.At(axis), others))
}
