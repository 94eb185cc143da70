package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var oneHotDefs = []Def{moveDef("OneHot", 3, 3, inferOneHot, oneHotAt)}

// oneHotAxis returns the result axis of the positions, and its extent.
func oneHotAxis(n *Node) (axis int, depth extent.Extent) {
	axis = n.axis(n.Int("axis", -1), n.In[0].Shape.Rank()+1)
	a, numbers := n.In[1].Const, n.In[1].Numbers
	switch {
	case len(numbers) == 1 && numbers[0].Over == 1 && numbers[0].Of.Min() >= 0:
		return axis, numbers[0].Of
	case a == nil || a.Len() != 1 || !(a.Float(0) >= 1 && a.Float(0) < 1<<40):
		n.fail("input 1 (depth) is not a positive constant: dynamic shapes are not supported")
		return axis, extent.Of(1)
	}
	return axis, extent.Of(int64(a.Float(0)))
}

func inferOneHot(n *Node) (Type, error) {
	axis, depth := oneHotAxis(n)
	n.check()
	if !n.In[2].Shape.Equal(extent.Fixed(2)) || n.In[0].DType == array.Bool {
		return Type{}, fmt.Errorf("indices %v or values %v do not fit", n.In[0].Type, n.In[2].Type)
	}
	return Type{n.In[2].DType, extent.ShapeOf(slices.Insert(slices.Clone(n.In[0].Shape.Extents()), axis, depth)...)}, nil
}

// oneHotAt returns the second of the two values at the position of the index, possibly counted from the end.
func oneHotAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis, depth := oneHotAxis(n)
	index := expr.To(array.Int64, in[0].At(slices.Delete(slices.Clone(i), axis, axis+1)...))
	index = expr.Sel(expr.Bin(expr.Lt, index, expr.I(0)), expr.AddE(index, l.Extent(depth)), index)
	return expr.Sel(expr.Bin(expr.Eq, index, i[axis]), in[2].At(expr.I(1)), in[2].At(expr.I(0)))
}
