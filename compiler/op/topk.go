package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var topKDefs = []Def{{
	Name: TopK, Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "topk", Infer: inferTopK, Lower: lowerTopK, Layout: rowMajorResult,
	Work: func(n *Node) float64 {
		return 2 * firstOperandWork(n) * float64(min(topKBlock, n.In[0].Shape.Max()[topKAxis(n)]))
	},
	Detail: func(n *Node) string { return fmt.Sprintf("axis %d k%d", topKAxis(n), topKCount(n).Max()) },
}}

func topKAxis(n *Node) int { return n.axis(n.Int("axis", -1), n.In[0].Shape.Rank()) }

// topKCount returns the number of elements wanted: operand 1, or an attribute before opset 10.
func topKCount(n *Node) extent.Extent {
	if !n.Has(1) {
		return extent.Of(n.Int("k", -1))
	}
	list := n.KnownExtents(1, "k")
	if len(list) != 1 {
		n.fail("input 1 (k) %v is not one number", list)
		return extent.Of(0)
	}
	return list[0]
}

func inferTopK(n *Node) (Type, error) {
	d := Get(numbers(&Node{In: n.In[:1]}))
	axis, k := topKAxis(n), topKCount(n)
	n.Int("largest", 1)
	n.check()
	size := n.In[0].Shape.At(axis)
	if k.Min() < 0 || !k.AtMost(size) {
		return Type{}, fmt.Errorf("%v elements of %v on axis %d are wanted%s", k, size, axis, fixOpen(k, size))
	}
	if n.Output > 0 {
		d = array.Int64
	}
	return Type{d, n.In[0].Shape.With(axis, k)}, nil
}

// topKBlock is the number of elements among which ranks are counted. The work for n elements is about n*topKBlock
// comparisons, in vectors, in each round; a round keeps the k best of every block, until one block holds the rest
// or k is too large to reduce it (then n*n).
const topKBlock = 1024

// topK selects along one axis. An index has the other axes' expressions and that of the axis.
type topK struct {
	l     *Lowering
	axis  int
	shape extent.Shape
	k     extent.Extent
	// notAfter returns the condition that a value comes before b or equals it; NaN is the largest. worst is no better
	// than any value.
	notAfter func(a, b expr.Expr) expr.Expr
	worst    expr.Expr
}

// contest holds the elements left in a round: their values and original positions by their places on the axis.
type contest struct {
	count           extent.Extent
	value, position func(i []expr.Expr) expr.Expr
}

// lowerTopK counts for each element those that come before it, by value and then by position, and takes the element
// of rank r as the r-th result.
func lowerTopK(l *Lowering, n *Node, in []Operand) Operand {
	x := l.Readable(in[0])
	t := &topK{l: l, axis: topKAxis(n), k: topKCount(n), shape: x.Shape}
	d := wideType(x.DType)
	if n.Int("largest", 1) != 0 {
		t.notAfter, t.worst = func(a, b expr.Expr) expr.Expr { return notLarger(b, a) }, expr.Lowest(d)
	} else if t.notAfter, t.worst = notLarger, expr.Highest(d); d.IsFloat() {
		t.worst = expr.F(d, math.NaN())
	}
	c := contest{
		count:    x.Shape.At(t.axis),
		value:    func(i []expr.Expr) expr.Expr { return exact(x.At(i...)) },
		position: func(i []expr.Expr) expr.Expr { return i[t.axis] },
	}
	for most := c.count.Max(); most > topKBlock; most = c.count.Max() {
		blocks, keep := (most+topKBlock-1)/topKBlock, min(t.k.Max(), topKBlock)
		if blocks*keep >= most {
			break
		}
		c = t.round(c, blocks, extent.Of(topKBlock), extent.Of(keep))
	}
	c = t.round(c, 1, c.count, t.k)
	chosen := c.value
	if n.Output > 0 {
		chosen = c.position
	}
	return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr { return expr.To(n.Out.DType, chosen(i)) })
}

// round keeps the best `keep` of each block, in order.
func (t *topK) round(c contest, blocks int64, size, keep extent.Extent) contest {
	if whole := extent.Of(blocks).Times(size); whole != c.count {
		c = t.fill(c, whole)
	}
	width, kept := t.l.Extent(size), t.l.Extent(keep)
	// Blocks are an axis of their own, so that loads stay affine.
	cut := func(each extent.Extent) extent.Shape {
		return extent.Concat(t.shape.Slice(0, t.axis), extent.ShapeOf(extent.Of(blocks), each), t.shape.Slice(t.axis+1, t.shape.Rank()))
	}
	join := func(i []expr.Expr, block, within expr.Expr) []expr.Expr {
		return slices.Concat(i[:t.axis], []expr.Expr{expr.AddE(expr.MulE(block, width), within)}, i[t.axis+2:])
	}
	rows := RowMajor(t.shape.Rank() + 1)
	rank := t.l.Reduce("rank", expr.Sum, cut(size), rows, extent.ShapeOf(size), func(i, r []expr.Expr) expr.Expr {
		own, other := c.value(join(i, i[t.axis], i[t.axis+1])), c.value(join(i, i[t.axis], r[0]))
		before := expr.Un(expr.Not, t.notAfter(own, other))
		earlier := expr.Bin(expr.And, t.notAfter(other, own), expr.Bin(expr.Lt, r[0], i[t.axis+1]))
		return expr.To(array.Int32, expr.Bin(expr.Or, before, earlier))
	})
	place := t.l.Reduce("place", expr.Maximum, cut(keep), rows, extent.ShapeOf(size), func(i, r []expr.Expr) expr.Expr {
		at := slices.Clone(i)
		at[t.axis+1] = r[0]
		found := expr.Bin(expr.Eq, rank.At(at...), expr.To(array.Int32, i[t.axis+1]))
		return expr.Sel(found, expr.AddE(expr.MulE(i[t.axis], width), r[0]), expr.I(0))
	})
	next := func(what func(i []expr.Expr) expr.Expr) func(i []expr.Expr) expr.Expr {
		return func(i []expr.Expr) expr.Expr {
			at := slices.Concat(i[:t.axis], []expr.Expr{
				expr.Bin(expr.FloorDiv, i[t.axis], kept), expr.Bin(expr.FloorMod, i[t.axis], kept),
			}, i[t.axis+1:])
			j := slices.Clone(i)
			j[t.axis] = place.At(at...)
			return what(j)
		}
	}
	left := contest{count: extent.Of(blocks).Times(keep), value: next(c.value), position: next(c.position)}
	if blocks == 1 {
		return left
	}
	return t.store(left)
}

// notLarger returns the condition that a is at most b, where NaN is larger than all numbers.
func notLarger(a, b expr.Expr) expr.Expr {
	found := expr.Bin(expr.Le, a, b)
	if a.DType().IsFloat() {
		found = expr.Bin(expr.Or, found, expr.Un(expr.IsNaN, b))
	}
	return found
}

// fill adds elements at the end that lose against all others.
func (t *topK) fill(c contest, count extent.Extent) contest {
	last := t.l.Extent(c.count.Minus(extent.Of(1)))
	filled := func(i []expr.Expr) expr.Expr {
		j := slices.Clone(i)
		j[t.axis] = expr.MinE(i[t.axis], last)
		return expr.Sel(expr.Bin(expr.Lt, i[t.axis], t.l.Extent(c.count)), c.value(j), t.worst)
	}
	position := func(i []expr.Expr) expr.Expr {
		j := slices.Clone(i)
		j[t.axis] = expr.MinE(i[t.axis], last)
		return c.position(j)
	}
	values := t.stage("filled", count, filled)
	return contest{count, func(i []expr.Expr) expr.Expr { return values.At(i...) }, position}
}

// store stores the remaining elements, so that the next round reads them without a look-up.
func (t *topK) store(c contest) contest {
	values, positions := t.stage("values", c.count, c.value), t.stage("positions", c.count, c.position)
	return contest{
		c.count,
		func(i []expr.Expr) expr.Expr { return values.At(i...) },
		func(i []expr.Expr) expr.Expr { return positions.At(i...) },
	}
}

func (t *topK) stage(name string, count extent.Extent, at func(i []expr.Expr) expr.Expr) Operand {
	return t.l.Map(name, t.shape.With(t.axis, count), RowMajor(t.shape.Rank()), at)
}
