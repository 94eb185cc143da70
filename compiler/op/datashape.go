package op

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// The result shapes of the operators below depend on the elements of an operand, which therefore must be constant.

var dataShapeDefs = []Def{
	knownDef("NonZero", 1, 1, evalNonZero),
	knownDef("Unique", 1, 1, evalUnique),
	{Name: "Compress", Kind: Injective, MinIn: 2, MaxIn: 2, Infer: inferCompress, Lower: lowerCompress},
}

// known returns operand k, or nil and a failure if it is not constant.
func (n *Node) known(k int) *array.Array {
	a := n.In[k].Const
	if a == nil {
		n.fail("the shape of its result depends on the elements of input %d, which is not constant: dynamic shapes are not supported", k)
	}
	return a
}

// evalNonZero returns a column for each nonzero element: its index.
func evalNonZero(n *Node) (*array.Array, error) {
	a := n.known(0)
	n.check()
	n.Budget.Bytes(8 * a.Len())
	var found []int64
	for i := range a.Len() {
		if a.Float(i) != 0 {
			found = append(found, i)
		}
	}
	rank := int64(len(a.Shape))
	out := n.Budget.array(array.Int64, rank, int64(len(found)))
	for c, i := range found {
		for k := rank - 1; k >= 0; k-- {
			out.SetInt(k*int64(len(found))+int64(c), i%a.Shape[k])
			i /= a.Shape[k]
		}
	}
	return out, nil
}

func inferCompress(n *Node) (Type, error) {
	selected := compressed(n)
	n.check()
	count := int64(len(selected))
	if n.Attrs["axis"] == nil {
		return Type{n.In[0].DType, extent.Fixed(count)}, nil
	}
	shape := n.In[0].Shape
	return Type{n.In[0].DType, shape.With(n.axis(n.Int("axis", 0), shape.Rank()), extent.Of(count))}, nil
}

// compressed returns the positions that the condition, operand 1, selects on the axis, or in the flattened operand.
func compressed(n *Node) []int64 {
	condition := n.known(1)
	shape := n.In[0].Shape
	size := shape.Elements()
	if n.Attrs["axis"] != nil {
		if axis := n.axis(n.Int("axis", 0), shape.Rank()); n.err == nil {
			size = shape.At(axis)
		}
	}
	n.check()
	if condition.DType != array.Bool || len(condition.Shape) != 1 || condition.Len() > size.Min() {
		n.fail("condition %v%v does not fit %v elements%s", condition.DType, condition.Shape, size, fixOpen(size))
		return nil
	}
	n.Budget.Bytes(8 * condition.Len())
	var selected []int64
	for i := range condition.Len() {
		if condition.Int(i) != 0 {
			selected = append(selected, i)
		}
	}
	return selected
}

func lowerCompress(l *Lowering, n *Node, in []Operand) Operand {
	x, selected := l.Readable(in[0]), compressed(n)
	positions := l.Made(l.budget.ints(selected, int64(len(selected))))
	return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr {
		if n.Attrs["axis"] == nil {
			return x.At(l.unflatten(positions.At(i[0]), x.Shape)...)
		}
		index := slices.Clone(i)
		axis := n.axis(n.Int("axis", 0), len(i))
		index[axis] = positions.At(i[axis])
		return x.At(index...)
	})
}

// evalUnique returns the distinct slices along an axis, or the distinct elements; then the first position of each,
// the number of the distinct slice for each slice, and the multiplicities.
func evalUnique(n *Node) (*array.Array, error) {
	a := n.known(0)
	n.check()
	u := slicesOf(n, a)
	n.Budget.Bytes(48 * u.count) // lists of slices, and results made of them
	n.Budget.Steps(float64(a.Len()) * math.Log2(float64(2+u.count)))
	distinct, which := u.distinct(n.Int("sorted", 1) != 0)
	count := int64(len(distinct))
	switch n.Output {
	case 0:
		n.Budget.Bytes(int64(len(a.Data)))
		return u.pick(distinct), nil
	case 1:
		return array.FromInt64(distinct, count), nil
	case 2:
		return array.FromInt64(which, int64(len(which))), nil
	case 3:
		counts := make([]int64, count)
		for _, k := range which {
			counts[k]++
		}
		return array.FromInt64(counts, count), nil
	}
	return nil, fmt.Errorf("there is no result %d", n.Output)
}

// sliced is an array as slices along an axis: outer x count x inner.
type sliced struct {
	a                   *array.Array
	shape               []int64
	axis                int
	outer, count, inner int64
}

func slicesOf(n *Node, a *array.Array) *sliced {
	if n.Attrs["axis"] == nil {
		return &sliced{a: a, shape: []int64{a.Len()}, outer: 1, count: a.Len(), inner: 1}
	}
	axis := n.axis(n.Int("axis", 0), len(a.Shape))
	n.check()
	return &sliced{a, a.Shape, axis, array.Elements(a.Shape[:axis]), a.Shape[axis], array.Elements(a.Shape[axis+1:])}
}

// element returns the position in the array of element e of slice s.
func (u *sliced) element(s, e int64) int64 { return (e/u.inner*u.count+s)*u.inner + e%u.inner }

func (u *sliced) compare(s, t int64) int {
	for e := range u.outer * u.inner {
		i, j := u.element(s, e), u.element(t, e)
		order := cmp.Compare(u.a.Int(i), u.a.Int(j))
		if u.a.DType.IsFloat() {
			order = cmp.Compare(u.a.Float(i), u.a.Float(j))
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// distinct returns the first slice of each kind, sorted by content or by position, and the kind of every slice.
func (u *sliced) distinct(sorted bool) (first, which []int64) {
	order := make([]int64, u.count)
	for s := range order {
		order[s] = int64(s)
	}
	slices.SortStableFunc(order, u.compare)
	which = make([]int64, u.count)
	for k, s := range order {
		if k == 0 || u.compare(order[k-1], s) != 0 {
			first = append(first, s)
		}
		which[s] = int64(len(first) - 1)
	}
	if sorted {
		return first, which
	}
	byPosition := slices.Clone(first)
	slices.Sort(byPosition)
	for s, k := range which {
		at, _ := slices.BinarySearch(byPosition, first[k])
		which[s] = int64(at)
	}
	return byPosition, which
}

// pick returns the array of the chosen slices.
func (u *sliced) pick(chosen []int64) *array.Array {
	shape := slices.Clone(u.shape)
	shape[u.axis] = int64(len(chosen))
	out := array.New(u.a.DType, shape...)
	to := sliced{out, shape, u.axis, u.outer, int64(len(chosen)), u.inner}
	size := u.a.DType.Bytes()
	for k, s := range chosen {
		for e := range u.outer * u.inner {
			i, j := to.element(int64(k), e), u.element(s, e)
			copy(out.Data[i*size:(i+1)*size], u.a.Data[j*size:])
		}
	}
	return out
}
