package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var sliceDefs = []Def{
	moveDef(Slice, 1, 5, inferSlice, func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
		start, step, _ := sliceRange(n)
		index := make([]expr.Expr, len(i))
		for k, e := range i {
			index[k] = expr.AddE(expr.MulE(e, expr.I(step[k])), l.Extent(start[k]))
		}
		return in[0].At(index...)
	}).with(Traits{Part: slicePart}),
	moveDef("Split", 1, 2, inferSplit, func(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), n.Out.Shape.Rank())
		begin, _ := splitRange(n, axis)
		index := append([]expr.Expr{}, i...)
		index[axis] = expr.AddE(i[axis], l.Extent(begin))
		return in[0].At(index...)
	}).with(Traits{Part: splitPart}),
}

// slicePart returns the start of a slice with steps of one.
func slicePart(n *Node) (begin []extent.Extent, ok bool) {
	start, step, _ := sliceRange(n)
	return start, areOnes(step)
}

func splitPart(n *Node) (begin []extent.Extent, ok bool) {
	axis := n.axis(n.Int("axis", 0), n.Out.Shape.Rank())
	begin = make([]extent.Extent, n.Out.Shape.Rank())
	begin[axis], _ = splitRange(n, axis)
	return begin, true
}

// sliceRange returns for each axis the first element, the step and the number of elements taken.
func sliceRange(n *Node) (start []extent.Extent, step []int64, count []extent.Extent) {
	shape := n.In[0].Shape
	rank := shape.Rank()
	start, step, count = make([]extent.Extent, rank), slices.Repeat([]int64{1}, rank), slices.Clone(shape.Extents())
	starts, ends := n.ExtentsOr(1, "starts"), n.ExtentsOr(2, "ends")
	axes, steps := n.IntsOr(3, "axes"), n.IntsOr(4, "steps")
	if axes == nil {
		for k := range starts {
			axes = append(axes, int64(k))
		}
	}
	n.axes(axes, rank)
	if n.err != nil || len(starts) != len(ends) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		n.fail("starts %v, ends %v, axes %v and steps %v do not fit", starts, ends, axes, steps)
		return start, step, count
	}
	for k, a := range axes {
		axis := n.axis(a, rank)
		if steps != nil {
			step[axis] = steps[k]
		}
		if step[axis] == 0 || step[axis] == math.MinInt64 {
			n.fail("step %d is not valid", step[axis])
			return start, step, count
		}
		for _, place := range []extent.Extent{starts[k], ends[k]} {
			if place.Min() < 0 && place.Max() >= 0 && !extent.Of(0).AtMost(place) {
				n.fail("whether %v counts from the end of axis %d depends on an open extent: fix it by --shape", place, axis)
			}
		}
		start[axis], count[axis] = clampExtents(starts[k], ends[k], step[axis], shape.At(axis))
	}
	return start, step, count
}

// farthest is more than any extent.
const farthest = 1 << 47

// clampExtents applies numpy's rules: negative positions count from the end, and all are clamped to the extent.
func clampExtents(start, end extent.Extent, step int64, size extent.Extent) (first, count extent.Extent) {
	lowest, highest := extent.Of(0), size
	if step < 0 {
		lowest, highest = extent.Of(-1), size.Minus(extent.Of(1))
	}
	place := func(v extent.Extent) extent.Extent {
		if v.Max() < 0 {
			v = v.Most(extent.Of(-farthest)).Plus(size)
		}
		return v.Least(highest).Most(lowest)
	}
	first, last := place(start), place(end)
	taken := last.Minus(first)
	if step < 0 {
		taken, step = first.Minus(last), -step
	}
	return first, taken.CeilOver(extent.Of(step)).Most(extent.Of(0))
}

// clampRange is clampExtents for numbers.
func clampRange(start, end, step, size int64) (first, count int64) {
	a, b := clampExtents(extent.Of(start), extent.Of(end), step, extent.Of(size))
	return a.Max(), b.Max()
}

func inferSlice(n *Node) (Type, error) {
	_, _, count := sliceRange(n)
	return Type{n.In[0].DType, extent.ShapeOf(count...)}, n.err
}

// splitRange returns the part of the axis that the node's result takes: equal parts, the last one smaller, unless
// lengths are given.
func splitRange(n *Node, axis int) (begin, length extent.Extent) {
	size := n.In[0].Shape.At(axis)
	if lengths := n.ExtentsOr(1, "split"); lengths != nil {
		if len(lengths) <= n.Output {
			n.fail("%d lengths for output %d", len(lengths), n.Output)
			return begin, length
		}
		for _, l := range lengths[:n.Output] {
			begin = begin.Plus(l)
		}
		return begin, lengths[n.Output]
	}
	parts := int64(max(1, n.Outputs))
	part := size.CeilOver(extent.Of(parts))
	begin = extent.Of(int64(n.Output)).Times(part).Least(size)
	return begin, part.Least(size.Minus(begin))
}

func inferSplit(n *Node) (Type, error) {
	shape := n.In[0].Shape
	axis := n.axis(n.Int("axis", 0), shape.Rank())
	n.check()
	begin, length := splitRange(n, axis)
	if n.err == nil && (begin.Min() < 0 || length.Min() < 0 || !begin.Plus(length).AtMost(shape.At(axis))) {
		return Type{}, fmt.Errorf("part %v to %v is outside axis %d of %v", begin, begin.Plus(length), axis, n.In[0].Type)
	}
	return Type{n.In[0].DType, shape.With(axis, length)}, n.err
}
