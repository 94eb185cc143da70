package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var gatherDefs = []Def{
	moveDef(Gather, 2, 2, inferGather, gatherAt),
	moveDef(GatherElements, 2, 2, inferGatherElements, func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
		index := append([]expr.Expr{}, i...)
		index[axis] = l.position(in[1].At(i...), n.In[0].Shape.At(axis))
		return in[0].At(index...)
	}),
}

func inferGather(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	axis := n.axis(n.Int("axis", 0), x.Shape.Rank())
	n.check()
	if index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices are %v and not i32 or i64", index.DType)
	}
	if x.Shape.At(axis).Is(0) {
		return Type{}, fmt.Errorf("nothing to gather in %v", x.Type)
	}
	return Type{x.DType, extent.Concat(x.Shape.Slice(0, axis), index.Shape, x.Shape.Slice(axis+1, x.Shape.Rank()))}, nil
}

func gatherAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := n.axis(n.Int("axis", 0), n.In[0].Shape.Rank())
	rank := n.In[1].Shape.Rank()
	index := append([]expr.Expr{}, i[:axis]...)
	index = append(index, l.position(in[1].At(i[axis:axis+rank]...), n.In[0].Shape.At(axis)))
	return in[0].At(append(index, i[axis+rank:]...)...)
}

// position returns an index, possibly counted from the end, clamped to the extent: a kernel must not read outside
// its operand for any input.
func (l *Lowering) position(e expr.Expr, size extent.Extent) expr.Expr {
	last := size.Minus(extent.Of(1))
	if c, ok := e.(*expr.Int); ok {
		v := extent.Of(c.Value)
		if c.Value < 0 {
			v = v.Plus(size)
		}
		return l.Extent(v.Least(last).Most(extent.Of(0)))
	}
	e = expr.To(array.Int64, e)
	e = expr.Sel(expr.Bin(expr.Lt, e, expr.I(0)), expr.AddE(e, l.Extent(size)), e)
	return expr.MaxE(expr.I(0), expr.MinE(e, l.Extent(last)))
}

func inferGatherElements(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	axis := n.axis(n.Int("axis", 0), x.Shape.Rank())
	n.check()
	if index.Shape.Rank() != x.Shape.Rank() || index.DType != array.Int32 && index.DType != array.Int64 {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	for k, e := range index.Shape.Extents() {
		if k != axis && !e.AtMost(x.Shape.At(k)) || x.Shape.At(k).Is(0) {
			return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
		}
	}
	return Type{x.DType, index.Shape}, nil
}
