package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// OnlyUnits reports whether a reshape only inserts and removes axes of extent 1. A kernel can compute it inline.
func OnlyUnits(n *Node) bool {
	return n.def.Kind == Reshaping && slices.Equal(longer(n.In[0].Shape.Fixed()), longer(n.Out.Shape.Fixed()))
}

// longer returns the extents other than 1.
func longer(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(e int64) bool { return e == 1 })
}

// lowerUnits is a reshape that inserts and removes axes of extent 1. In memory, those come first.
func lowerUnits(l *Lowering, n *Node, in Operand) Operand {
	x := l.Readable(in)
	from := axesOf(x.Shape.Fixed()) // of the operand, in order
	to := axesOf(n.Out.Shape.Fixed())
	layout := []int{}
	for k, e := range n.Out.Shape.Fixed() {
		if e == 1 {
			layout = append(layout, k)
		}
	}
	for _, axis := range x.Layout {
		if k := slices.Index(from, axis); k >= 0 {
			layout = append(layout, to[k])
		}
	}
	return l.Lazy(n.Out, layout, func(i []expr.Expr) expr.Expr {
		index := zeros(x.Shape.Rank())
		for k, axis := range from {
			index[axis] = i[to[k]]
		}
		return x.At(index...)
	})
}

// axesOf returns the axes longer than 1.
func axesOf(shape []int64) []int {
	var axes []int
	for k, e := range shape {
		if e != 1 {
			axes = append(axes, k)
		}
	}
	return axes
}
