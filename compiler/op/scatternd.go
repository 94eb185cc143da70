package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

func inferScatterND(n *Node) (Type, error) {
	x, index, updates := n.In[0], n.In[1], n.In[2]
	count := tupleAxes(n, x.Shape.Rank(), 0, index.Type)
	n.scatterReduction()
	if n.err != nil {
		return Type{}, n.err
	}
	want := slices.Concat(index.Shape.Fixed()[:index.Shape.Rank()-1], x.Shape.Fixed()[count:])
	if updates.DType != x.DType || !sameShape(updates.Shape.Fixed(), want) {
		return Type{}, fmt.Errorf("updates %v are not %v%v, as indices %v of %v want", updates.Type, x.DType, want, index.Shape, x.Shape)
	}
	if slices.Contains(x.Shape.Fixed(), 0) {
		return Type{}, fmt.Errorf("nothing to scatter into in %v", x.Type)
	}
	return x.Type, nil
}

func scatterNDWork(n *Node) float64 {
	index := n.In[1].Shape.Fixed()
	tuples := index[:len(index)-1]
	keys := n.Out.Shape.Fixed()[:index[len(index)-1]]
	return float64(array.Elements(keys))*float64(array.Elements(tuples)) + float64(array.Elements(n.Out.Shape.Fixed()))
}

func lowerScatterND(l *Lowering, n *Node, in []Operand) (Operand, error) {
	x, updates := l.Readable(in[0]), l.Readable(in[2])
	index := n.In[1].Shape.Fixed()
	outer := len(index) - 1
	tuples, count := index[:outer], int(index[outer])
	if array.Elements(tuples) == 0 {
		return x, nil
	}
	keys := n.Out.Shape.Fixed()[:count]
	s := scatter{l: l, n: n, x: x, count: array.Elements(tuples), shape: keys, layout: RowMajor(count)}
	s.key = func(i []expr.Expr) []expr.Expr { return i[:count] }
	s.names = func(indices Operand) func(i []expr.Expr, u expr.Expr) expr.Expr {
		return func(i []expr.Expr, u expr.Expr) expr.Expr {
			var same expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
			for k := range count {
				at := append(unflatten(u, tuples), expr.I(int64(k)))
				same = expr.Bin(expr.And, same, expr.Bin(expr.Eq, position(indices.At(at...), keys[k]), i[k]))
			}
			return same
		}
	}
	s.update = func(i []expr.Expr, u expr.Expr) expr.Expr {
		return updates.At(append(unflatten(u, tuples), i[count:]...)...)
	}
	if in[1].Const != nil {
		s.last = lastTuples(l.budget, in[1].Const, keys)
	}
	return s.lower(in[1])
}

// unflatten returns the index of a row-major position.
func unflatten(flat expr.Expr, shape []int64) []expr.Expr {
	index := make([]expr.Expr, len(shape))
	for k := len(shape) - 1; k > 0; k-- {
		index[k] = expr.Bin(expr.FloorMod, flat, expr.I(shape[k]))
		flat = expr.Bin(expr.FloorDiv, flat, expr.I(shape[k]))
	}
	if len(shape) > 0 {
		index[0] = flat
	}
	return index
}

// lastTuples returns for each key the number of the last tuple that names it, or -1.
func lastTuples(b *Budget, index *array.Array, keys []int64) *array.Array {
	last := b.array(array.Int64, keys...)
	for i := range last.Len() {
		last.SetInt(i, -1)
	}
	count := int64(len(keys))
	at := make([]int64, count)
	for u := range index.Len() / count {
		for k := range count {
			at[k] = knownPosition(index.Int(u*count+k), keys[k])
		}
		last.SetInt(flatten(at, keys), u)
	}
	return last
}
