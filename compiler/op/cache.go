package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

var cacheDefs = []Def{moveDef("TensorScatter", 2, 3, inferTensorScatter, tensorScatterAt)}

func inferTensorScatter(n *Node) (Type, error) {
	cache, update := n.In[0], n.In[1]
	rank := cache.Shape.Rank()
	axis := n.axis(n.Int("axis", -2), rank)
	n.check()
	fits := update.Shape.Rank() == rank && axis > 0 && update.DType == cache.DType
	for k := 0; fits && k < rank; k++ {
		fits = update.Shape.At(k) == cache.Shape.At(k) || k == axis && update.Shape.At(k).AtMost(cache.Shape.At(k))
	}
	if !fits {
		return Type{}, fmt.Errorf("update %v does not fit cache %v along axis %d", update.Type, cache.Type, axis)
	}
	if n.Has(2) && (n.In[2].DType != array.Int64 || !n.In[2].Shape.Equal(cache.Shape.Slice(0, 1))) {
		return Type{}, fmt.Errorf("write indices %v are not i64[%v]", n.In[2].Type, cache.Shape.At(0))
	}
	if mode := n.Text("mode", "linear"); mode != "linear" && mode != "circular" {
		return Type{}, fmt.Errorf("mode %q is not linear or circular", mode)
	}
	return cache.Type, nil
}

// tensorScatterAt reads the update at the positions written, which start at the write index of the batch, and the
// cache elsewhere.
func tensorScatterAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := n.axis(n.Int("axis", -2), len(i))
	at := i[axis]
	if n.Has(2) {
		at = expr.SubE(at, in[2].At(i[0]))
	}
	if n.Text("mode", "linear") == "circular" {
		at = expr.Bin(expr.FloorMod, at, l.Extent(n.In[0].Shape.At(axis)))
	}
	index := append([]expr.Expr{}, i...)
	index[axis] = at
	return expr.Sel(expr.Bin(expr.And, expr.Bin(expr.Le, expr.I(0), at), expr.Bin(expr.Lt, at, l.Extent(n.In[1].Shape.At(axis)))), in[1].At(index...), in[0].At(i...))
}
