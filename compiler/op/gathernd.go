package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var gatherNDDefs = []Def{moveDef("GatherND", 2, 2, inferGatherND, gatherNDAt)}

// tupleAxes returns the number of axes that each index tuple selects on, after the batch axes, for the given rank.
func tupleAxes(n *Node, rank, batch int, index Type) int {
	if index.DType != array.Int64 && index.DType != array.Int32 {
		n.fail("indices are %v and not i64", index.DType)
		return 0
	}
	if index.Shape.Rank() == 0 {
		n.fail("indices %v have no axis of tuples", index.Shape)
		return 0
	}
	last, isConst := index.Shape.At(index.Shape.Rank() - 1).Const()
	if !isConst || last < 1 || last > int64(rank-batch) || batch < 0 || batch >= index.Shape.Rank() {
		n.fail("indices %v do not fit a value of rank %d and %d batch axes", index.Shape, rank, batch)
		return 0
	}
	return int(last)
}

func inferGatherND(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	batch := n.Int("batch_dims", 0)
	if batch < 0 || batch > int64(min(x.Shape.Rank(), index.Shape.Rank())) {
		return Type{}, fmt.Errorf("batch_dims %d does not fit %v and %v", batch, x.Type, index.Type)
	}
	b := int(batch)
	count := tupleAxes(n, x.Shape.Rank(), b, index.Type)
	n.check()
	if !x.Shape.Slice(0, b).Equal(index.Shape.Slice(0, b)) || x.Shape.Slice(b, b+count).IsEmpty() {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	return Type{x.DType, extent.Concat(index.Shape.Slice(0, index.Shape.Rank()-1), x.Shape.Slice(b+count, x.Shape.Rank()))}, nil
}

func gatherNDAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	x, index := n.In[0].Shape, n.In[1].Shape
	batch, outer := int(n.Int("batch_dims", 0)), index.Rank()-1
	count := int(index.Max()[outer])
	at := slices.Clone(i[:batch])
	for k := range count {
		tuple := append(slices.Clone(i[:outer]), expr.I(int64(k)))
		at = append(at, l.position(in[1].At(tuple...), x.At(batch+k)))
	}
	return in[0].At(append(at, i[outer:]...)...)
}
