package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// OnlyUnits reports whether a reshape only inserts and removes axes of extent 1. A kernel can compute it inline.
func OnlyUnits(n *Node) bool {
	return n.def.Kind == Reshaping && slices.Equal(longer(n.In[0].Shape), longer(n.Out.Shape))
}

// longer returns the extents other than 1.
func longer(shape extent.Shape) []extent.Extent {
	return slices.DeleteFunc(slices.Clone(shape.Extents()), func(e extent.Extent) bool { return e.Is(1) })
}

// lowerUnits is a reshape that inserts and removes axes of extent 1. In memory, those come first.
func lowerUnits(l *Lowering, n *Node, in Operand) Operand {
	x := l.Readable(in)
	from := longAxes(x.Shape, RowMajor(x.Shape.Rank())) // of the operand, in order
	to := longAxes(n.Out.Shape, RowMajor(n.Out.Shape.Rank()))
	layout := []int{}
	for k, e := range n.Out.Shape.Extents() {
		if e.Is(1) {
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
