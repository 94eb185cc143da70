package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

type (
	termFn func(x expr.Expr) expr.Expr
	// afterFn completes a reduction of count elements.
	afterFn func(acc expr.Expr, count count) expr.Expr
)

var reduceDefs = []Def{
	reduceDef(ReduceSum, expr.Sum, same, unscaled),
	reduceDef("ReduceProd", expr.Prod, same, unscaled),
	reduceDef(ReduceMax, expr.Maximum, same, unscaled),
	reduceDef(ReduceMin, expr.Minimum, same, unscaled),
	reduceDef(ReduceMean, expr.Sum, same, func(acc expr.Expr, count count) expr.Expr {
		if !acc.DType().IsFloat() {
			return expr.DivE(acc, count.as(acc.DType()))
		}
		return expr.MulE(acc, count.inverse(acc.DType()))
	}),
	reduceDef("ReduceSumSquare", expr.Sum, square, unscaled),
	reduceDef(ReduceL1, expr.Sum, func(x expr.Expr) expr.Expr { return expr.Un(expr.Abs, x) }, unscaled),
	reduceDef(ReduceL2, expr.Sum, square, func(acc expr.Expr, _ count) expr.Expr { return expr.Un(expr.Sqrt, acc) }),
	reduceDef("ReduceLogSum", expr.Sum, same, func(acc expr.Expr, _ count) expr.Expr { return expr.Un(expr.Log, acc) }),
	{
		Name: "ReduceLogSumExp", Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "reducelogsumexp",
		Infer: inferReduce, Lower: lowerLogSumExp, Layout: reduceLayout, Work: firstOperandWork,
	},
}

func same(x expr.Expr) expr.Expr { return x }

func unscaled(acc expr.Expr, _ count) expr.Expr { return acc }

func square(x expr.Expr) expr.Expr { return expr.MulE(x, x) }

func reduceDef(name string, c expr.Combiner, term termFn, after afterFn) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "reduce", Infer: inferReduce, Layout: reduceLayout, Traits: Traits{Once: true},
		Work: firstOperandWork,
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			data := l.Readable(in[0])
			reduced := reducedAxes(n)
			acc := l.reduceAxes("reduce", c, data, reduced, func(i, _ []expr.Expr) expr.Expr { return term(wide(data.At(i...))) })
			count := count{l, elementsOver(data.Shape, reduced)}
			return keepReduced(l, n, acc, reduced, func(e expr.Expr) expr.Expr { return after(e, count) })
		},
		Detail: func(n *Node) string { return fmt.Sprintf("%s axes %v", n.Op[len("Reduce"):], axisList(reducedAxes(n))) },
	}
}

// reducedAxes flags the reduced axes: all if none are given, unless an attribute changes that.
func reducedAxes(n *Node) []bool {
	rank := n.In[0].Shape.Rank()
	list := n.IntsOr(1, "axes")
	if len(list) > 0 {
		return n.axes(list, rank)
	}
	return slices.Repeat([]bool{n.Int("noop_with_empty_axes", 0) == 0}, rank)
}

func axisList(set []bool) []int {
	var list []int
	for k, s := range set {
		if s {
			list = append(list, k)
		}
	}
	return list
}

// count is a number of elements in the expressions of a kernel.
type count struct {
	l  *Lowering
	of extent.Extent
}

// as returns the count as a number of a type.
func (c count) as(d array.DType) expr.Expr {
	if n, ok := c.of.Const(); ok {
		return expr.F(d, float64(n))
	}
	return expr.To(d, c.l.Extent(c.of))
}

// inverse returns 1 / count as a floating-point number.
func (c count) inverse(d array.DType) expr.Expr {
	if n, ok := c.of.Const(); ok {
		return expr.F(d, 1/float64(n))
	}
	return expr.DivE(expr.F(d, 1), c.as(d))
}

// elementsOver returns the number of elements over the flagged axes.
func elementsOver(shape extent.Shape, axes []bool) extent.Extent {
	n := extent.Of(1)
	for k, e := range shape.Extents() {
		if axes[k] {
			n = n.Times(e)
		}
	}
	return n
}

func inferReduce(n *Node) (Type, error) {
	d := n.In[0].DType
	set := reducedAxes(n)
	n.check()
	keep := n.Int("keepdims", 1) != 0
	out := []extent.Extent{}
	for k, e := range n.In[0].Shape.Extents() {
		switch {
		case !set[k]:
			out = append(out, e)
		case keep:
			out = append(out, extent.Of(1))
		}
	}
	return Type{d, extent.ShapeOf(out...)}, nil
}

func reduceLayout(n *Node, in [][]int) []int {
	if n.Int("keepdims", 1) != 0 {
		return in[0]
	}
	return dropAxes(in[0], reducedAxes(n))
}

// reduceAxes combines a term of each element of x over the flagged axes; the result has the other axes only.
// Without flagged axes it is the term itself.
func (l *Lowering) reduceAxes(name string, c expr.Combiner, x Operand, reduced []bool,
	term func(i, kept []expr.Expr) expr.Expr) Operand {
	var shape, over []extent.Extent
	for _, axis := range x.Layout { // reduction axes in the order of memory
		if reduced[axis] {
			over = append(over, x.Shape.At(axis))
		}
	}
	for k, e := range x.Shape.Extents() {
		if !reduced[k] {
			shape = append(shape, e)
		}
	}
	layout := dropAxes(x.Layout, reduced)
	full := func(i, r []expr.Expr) []expr.Expr {
		index := make([]expr.Expr, x.Shape.Rank())
		for _, axis := range x.Layout {
			if reduced[axis] {
				index[axis], r = r[0], r[1:]
			}
		}
		kept := i
		for k := range index {
			if !reduced[k] {
				index[k], kept = kept[0], kept[1:]
			}
		}
		return index
	}
	if len(over) == 0 {
		return l.Map(name, extent.ShapeOf(shape...), layout, func(i []expr.Expr) expr.Expr { return term(full(i, nil), i) })
	}
	return l.Reduce(name, c, extent.ShapeOf(shape...), layout, extent.ShapeOf(over...), func(i, r []expr.Expr) expr.Expr { return term(full(i, r), i) })
}

// keptOf returns the index expressions of the axes that are not reduced.
func keptOf(i []expr.Expr, reduced []bool) []expr.Expr {
	kept := []expr.Expr{}
	for k, e := range i {
		if !reduced[k] {
			kept = append(kept, e)
		}
	}
	return kept
}

// keepReduced gives a reduced value the node's shape, which may keep the reduced axes, and its type.
func keepReduced(l *Lowering, n *Node, acc Operand, reduced []bool, after termFn) Operand {
	keep := n.Int("keepdims", 1) != 0
	layout := acc.Layout
	if keep {
		layout = RowMajor(n.Out.Shape.Rank())
	}
	return l.Lazy(n.Out, layout, func(i []expr.Expr) expr.Expr {
		if keep {
			i = keptOf(i, reduced)
		}
		return expr.To(n.Out.DType, after(acc.At(i...)))
	})
}

// lowerLogSumExp subtracts the largest element first to avoid overflow, unless it is infinite.
func lowerLogSumExp(l *Lowering, n *Node, in []Operand) Operand {
	x, reduced := l.Readable(in[0]), reducedAxes(n)
	largest := l.reduceAxes("largest", expr.Maximum, x, reduced, func(i, _ []expr.Expr) expr.Expr { return wide(x.At(i...)) })
	shift := func(kept []expr.Expr) expr.Expr {
		e := largest.At(kept...)
		return expr.Sel(expr.Un(expr.IsInf, e), like(e, 0), e)
	}
	sum := l.reduceAxes("sum", expr.Sum, x, reduced, func(i, kept []expr.Expr) expr.Expr {
		return expr.Un(expr.Exp, expr.SubE(wide(x.At(i...)), shift(kept)))
	})
	acc := l.Map("logsumexp", sum.Shape, sum.Layout, func(i []expr.Expr) expr.Expr {
		return expr.AddE(expr.Un(expr.Log, sum.At(i...)), shift(i))
	})
	return keepReduced(l, n, acc, reduced, same)
}
