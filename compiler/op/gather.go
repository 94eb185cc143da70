package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var gatherDefs = []Def{
	moveDef(Gather, 2, 2, inferGather, gatherAt),
	moveDef(GatherElements, 2, 2, inferGatherElements, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
		index := append([]expr.Expr{}, i...)
		index[axis] = position(in[1].At(i...), n.In[0].Shape.Fixed()[axis])
		return in[0].At(index...)
	}),
}

func inferGather(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	axis := n.axis(n.Int("axis", 0), x.Shape.Rank())
	if n.err != nil {
		return Type{}, n.err
	}
	if index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices are %v and not i32 or i64", index.DType)
	}
	if x.Shape.Fixed()[axis] == 0 {
		return Type{}, fmt.Errorf("nothing to gather in %v", x.Type)
	}
	shape := append([]int64{}, x.Shape.Fixed()[:axis]...)
	shape = append(shape, index.Shape.Fixed()...)
	return Type{x.DType, extent.Fixed(append(shape, x.Shape.Fixed()[axis+1:]...)...)}, nil
}

func gatherAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
	rank := n.In[1].Shape.Rank()
	index := append([]expr.Expr{}, i[:axis]...)
	index = append(index, position(in[1].At(i[axis:axis+rank]...), n.In[0].Shape.Fixed()[axis]))
	return in[0].At(append(index, i[axis+rank:]...)...)
}

// position returns an index, possibly counted from the end, clamped to the extent: a kernel must not read outside
// its operand for any input.
func position(e expr.Expr, extent int64) expr.Expr {
	if c, ok := e.(*expr.Int); ok {
		v := c.Value
		if v < 0 {
			v += extent
		}
		return expr.I(max(0, min(v, extent-1)))
	}
	e = expr.To(array.Int64, e)
	e = expr.Sel(expr.Bin(expr.Lt, e, expr.I(0)), expr.AddE(e, expr.I(extent)), e)
	return expr.MaxE(expr.I(0), expr.MinE(e, expr.I(extent-1)))
}

func inferGatherElements(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	axis := n.axis(n.Int("axis", 0), x.Shape.Rank())
	if n.err != nil {
		return Type{}, n.err
	}
	if index.Shape.Rank() != x.Shape.Rank() || index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	for k, e := range index.Shape.Fixed() {
		if k != axis && e > x.Shape.Fixed()[k] || x.Shape.Fixed()[k] == 0 {
			return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
		}
	}
	return Type{x.DType, index.Shape}, nil
}
