package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var hardmaxDefs = []Def{{
	Name: "Hardmax", Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "hardmax",
	Infer: func(n *Node) (Type, error) {
		d, err := floats(n)
		softmaxAxes(n)
		return Type{d, n.In[0].Shape}, err
	},
	Lower: func(l *Lowering, n *Node, in []Operand) Operand { return lowerHardmax(l, n, in[0]) },
	Work:  func(n *Node) float64 { return 3 * firstOperandWork(n) },
}}

// lowerHardmax is one at the first of the largest elements, or of NaN, and zero elsewhere: stages largest, first.
func lowerHardmax(l *Lowering, n *Node, x Operand) Operand {
	x = l.Readable(x)
	axes := softmaxAxes(n)
	largest := l.reduceAxes("largest", expr.Maximum, x, axes, func(i, _ []expr.Expr) expr.Expr { return exact(x.At(i...)) })
	first := l.reduceAxes("first", expr.Minimum, x, axes, func(i, kept []expr.Expr) expr.Expr {
		return expr.Sel(isExtreme(exact(x.At(i...)), largest.At(kept...)), l.place(i, x.Shape, axes), expr.Highest(array.Int64))
	})
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		hit := expr.Bin(expr.Eq, l.place(i, x.Shape, axes), first.At(keptOf(i, axes)...))
		return expr.Sel(hit, expr.F(n.Out.DType, 1), expr.Zero(n.Out.DType))
	})
}

// place returns the row-major position of an index on the flagged axes.
func (l *Lowering) place(i []expr.Expr, shape extent.Shape, axes []bool) expr.Expr {
	at := expr.I(0)
	for k, e := range i {
		if axes[k] {
			at = expr.AddE(expr.MulE(at, l.Extent(shape.At(k))), e)
		}
	}
	return at
}
