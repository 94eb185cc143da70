package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

func inferScatterND(n *Node) (Type, error) {
	x, index, updates := n.In[0], n.In[1], n.In[2]
	count := tupleAxes(n, x.Shape.Rank(), 0, index.Type)
	n.scatterReduction()
	n.check()
	want := extent.Concat(index.Shape.Slice(0, index.Shape.Rank()-1), x.Shape.Slice(count, x.Shape.Rank()))
	if updates.DType != x.DType || !updates.Shape.Equal(want) {
		return Type{}, fmt.Errorf("updates %v are not %v%v, as indices %v of %v want", updates.Type, x.DType, want, index.Shape, x.Shape)
	}
	if x.Shape.IsEmpty() {
		return Type{}, fmt.Errorf("nothing to scatter into in %v", x.Type)
	}
	return x.Type, nil
}

func scatterNDWork(n *Node) float64 {
	index := n.In[1].Shape.Max()
	tuples := index[:len(index)-1]
	keys := n.Out.Shape.Max()[:index[len(index)-1]]
	return float64(array.Elements(keys))*float64(array.Elements(tuples)) + float64(array.Elements(n.Out.Shape.Max()))
}

func lowerScatterND(l *Lowering, n *Node, in []Operand) Operand {
	x, updates := l.Readable(in[0]), l.Readable(in[2])
	index := n.In[1].Shape
	outer := index.Rank() - 1
	tuples, count := index.Slice(0, outer), int(index.Max()[outer])
	if tuples.IsEmpty() {
		return x
	}
	keys := n.Out.Shape.Slice(0, count)
	s := scatter{l: l, n: n, x: x, count: tuples.Elements(), shape: keys, layout: RowMajor(count)}
	s.key = func(i []expr.Expr) []expr.Expr { return i[:count] }
	s.names = func(indices Operand) func(i []expr.Expr, u expr.Expr) expr.Expr {
		return func(i []expr.Expr, u expr.Expr) expr.Expr {
			var same expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
			for k := range count {
				at := append(l.unflatten(u, tuples), expr.I(int64(k)))
				same = expr.Bin(expr.And, same, expr.Bin(expr.Eq, l.position(indices.At(at...), keys.At(k)), i[k]))
			}
			return same
		}
	}
	s.update = func(i []expr.Expr, u expr.Expr) expr.Expr {
		return updates.At(append(l.unflatten(u, tuples), i[count:]...)...)
	}
	if in[1].Const != nil && !keys.IsOpen() {
		s.last = lastTuples(l.budget, in[1].Const, keys.Max())
	}
	return s.lower(in[1])
}

// unflatten returns the index of a row-major position.
func (l *Lowering) unflatten(flat expr.Expr, shape extent.Shape) []expr.Expr {
	index := make([]expr.Expr, shape.Rank())
	for k := len(index) - 1; k > 0; k-- {
		size := l.Extent(shape.At(k))
		index[k] = expr.Bin(expr.FloorMod, flat, size)
		flat = expr.Bin(expr.FloorDiv, flat, size)
	}
	if len(index) > 0 {
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
