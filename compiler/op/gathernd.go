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
	last := index.Shape.Fixed()[index.Shape.Rank()-1]
	if last < 1 || last > int64(rank-batch) || batch < 0 || batch >= index.Shape.Rank() {
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
	if n.err != nil {
		return Type{}, n.err
	}
	if !sameShape(x.Shape.Fixed()[:b], index.Shape.Fixed()[:b]) || slices.Contains(x.Shape.Fixed()[b:b+count], 0) {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	return Type{x.DType, extent.Fixed(slices.Concat(index.Shape.Fixed()[:index.Shape.Rank()-1], x.Shape.Fixed()[b+count:])...)}, nil
}

func gatherNDAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	x, index := n.In[0].Shape.Fixed(), n.In[1].Shape.Fixed()
	batch, outer := int(n.Int("batch_dims", 0)), len(index)-1
	count := int(index[outer])
	at := slices.Clone(i[:batch])
	for k := range count {
		tuple := append(slices.Clone(i[:outer]), expr.I(int64(k)))
		at = append(at, position(in[1].At(tuple...), x[batch+k]))
	}
	return in[0].At(append(at, i[outer:]...)...)
}
