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
	if n.err != nil {
		return Type{}, n.err
	}
	fits := update.Shape.Rank() == rank && axis > 0 && update.DType == cache.DType
	for k := 0; fits && k < rank; k++ {
		fits = update.Shape.Fixed()[k] == cache.Shape.Fixed()[k] || k == axis && update.Shape.Fixed()[k] < cache.Shape.Fixed()[k]
	}
	if !fits {
		return Type{}, fmt.Errorf("update %v does not fit cache %v along axis %d", update.Type, cache.Type, axis)
	}
	if n.Has(2) && (n.In[2].DType != array.Int64 || !sameShape(n.In[2].Shape.Fixed(), cache.Shape.Fixed()[:1])) {
		return Type{}, fmt.Errorf("write indices %v are not i64[%d]", n.In[2].Type, cache.Shape.Fixed()[0])
	}
	if mode := n.Text("mode", "linear"); mode != "linear" && mode != "circular" {
		return Type{}, fmt.Errorf("mode %q is not linear or circular", mode)
	}
	return cache.Type, nil
}

// tensorScatterAt reads the update at the positions written, which start at the write index of the batch, and the
// cache elsewhere.
func tensorScatterAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	axis := n.axis(n.Int("axis", -2), len(i))
	at := i[axis]
	if n.Has(2) {
		at = expr.SubE(at, in[2].At(i[0]))
	}
	if n.Text("mode", "linear") == "circular" {
		at = expr.Bin(expr.FloorMod, at, expr.I(n.In[0].Shape.Fixed()[axis]))
	}
	index := append([]expr.Expr{}, i...)
	index[axis] = at
	return expr.Sel(expr.InRange(at, 0, n.In[1].Shape.Fixed()[axis]), in[1].At(index...), in[0].At(i...))
}
