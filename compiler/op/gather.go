package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

var gatherDefs = []Def{
	moveDef(Gather, 2, 2, inferGather, gatherAt),
	moveDef(GatherElements, 2, 2, inferGatherElements, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), len(n.In[0].Shape))
		index := append([]expr.Expr{}, i...)
		index[axis] = position(in[1].At(i...), n.In[0].Shape[axis])
		return in[0].At(index...)
	}),
}

func inferGather(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	axis := n.axis(n.Int("axis", 0), len(x.Shape))
	if n.err != nil {
		return Type{}, n.err
	}
	if index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices are %v and not i32 or i64", index.DType)
	}
	if x.Shape[axis] == 0 {
		return Type{}, fmt.Errorf("nothing to gather in %v", x.Type)
	}
	shape := append([]int64{}, x.Shape[:axis]...)
	shape = append(shape, index.Shape...)
	return Type{x.DType, append(shape, x.Shape[axis+1:]...)}, nil
}

func gatherAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := n.axis(n.Int("axis", 0), len(n.In[0].Shape))
	rank := len(n.In[1].Shape)
	index := append([]expr.Expr{}, i[:axis]...)
	index = append(index, position(in[1].At(i[axis:axis+rank]...), n.In[0].Shape[axis]))
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
	axis := n.axis(n.Int("axis", 0), len(x.Shape))
	if n.err != nil {
		return Type{}, n.err
	}
	if len(index.Shape) != len(x.Shape) || index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	for k, e := range index.Shape {
		if k != axis && e > x.Shape[k] || x.Shape[k] == 0 {
			return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
		}
	}
	return Type{x.DType, index.Shape}, nil
}
