package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var sliceDefs = []Def{
	moveDef(Slice, 1, 5, inferSlice, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		start, step, _ := sliceRange(n)
		index := make([]expr.Expr, len(i))
		for k, e := range i {
			index[k] = expr.AddE(expr.MulE(e, expr.I(step[k])), expr.I(start[k]))
		}
		return in[0].At(index...)
	}).with(Traits{Part: slicePart}),
	moveDef("Split", 1, 2, inferSplit, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
		axis := n.axis(n.Int("axis", 0), n.Out.Shape.Rank())
		begin, _ := splitRange(n, axis)
		index := append([]expr.Expr{}, i...)
		index[axis] = expr.AddE(i[axis], expr.I(begin))
		return in[0].At(index...)
	}).with(Traits{Part: splitPart}),
}

// slicePart returns the start of a slice with steps of one.
func slicePart(n *Node) (begin []int64, ok bool) {
	start, step, _ := sliceRange(n)
	return start, areOnes(step)
}

func splitPart(n *Node) (begin []int64, ok bool) {
	axis := n.axis(n.Int("axis", 0), n.Out.Shape.Rank())
	begin = make([]int64, n.Out.Shape.Rank())
	begin[axis], _ = splitRange(n, axis)
	return begin, true
}

// sliceRange returns for each axis the first element, the step and the number of elements taken.
func sliceRange(n *Node) (start, step, count []int64) {
	shape := n.In[0].Shape.Fixed()
	rank := len(shape)
	start, step, count = make([]int64, rank), slices.Repeat([]int64{1}, rank), append([]int64{}, shape...)
	starts, ends := n.IntsOr(1, "starts"), n.IntsOr(2, "ends")
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
		start[axis], count[axis] = clampRange(starts[k], ends[k], step[axis], shape[axis])
	}
	return start, step, count
}

// clampRange applies numpy's rules: negative positions count from the end, and all are clamped to the extent.
func clampRange(start, end, step, extent int64) (first, count int64) {
	lowest, highest := int64(0), extent
	if step < 0 {
		lowest, highest = -1, extent-1
	}
	place := func(v int64) int64 {
		if v < 0 {
			v += extent
		}
		return max(lowest, min(v, highest))
	}
	first, last := place(start), place(end)
	if step > 0 && last > first {
		count = (last-first-1)/step + 1
	}
	if step < 0 && last < first {
		count = (first-last-1)/-step + 1
	}
	return first, count
}

func inferSlice(n *Node) (Type, error) {
	_, _, count := sliceRange(n)
	return Type{n.In[0].DType, extent.Fixed(count...)}, n.err
}

// splitRange returns the part of the axis that the node's result takes: equal parts, the last one smaller, unless
// lengths are given.
func splitRange(n *Node, axis int) (begin, length int64) {
	extent := n.In[0].Shape.Fixed()[axis]
	if lengths := n.IntsOr(1, "split"); lengths != nil {
		if len(lengths) <= n.Output {
			n.fail("%d lengths for output %d", len(lengths), n.Output)
			return 0, 0
		}
		for _, l := range lengths[:n.Output] {
			begin += l
		}
		return begin, lengths[n.Output]
	}
	parts := int64(max(1, n.Outputs))
	part := (extent + parts - 1) / parts
	begin = min(extent, int64(n.Output)*part)
	return begin, min(part, extent-begin)
}

func inferSplit(n *Node) (Type, error) {
	shape := append([]int64{}, n.In[0].Shape.Fixed()...)
	axis := n.axis(n.Int("axis", 0), len(shape))
	if n.err != nil {
		return Type{}, n.err
	}
	begin, length := splitRange(n, axis)
	if n.err == nil && (begin < 0 || length < 0 || begin+length > shape[axis]) {
		return Type{}, fmt.Errorf("part %d to %d is outside axis %d of %v", begin, begin+length, axis, n.In[0].Type)
	}
	shape[axis] = length
	return Type{n.In[0].DType, extent.Fixed(shape...)}, nil
}
