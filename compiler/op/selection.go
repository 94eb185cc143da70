package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Positions lists the positions of the true elements in a vector of bools, in order. It has as many results as
// there are bools; those beyond the last true element are the last position.
const Positions = "positions"

var selectionDefs = []Def{{
	Name: Positions, Internal: true, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "positions", Layout: rowMajorResult,
	Infer: func(n *Node) (Type, error) {
		if x := n.In[0]; x.DType != array.Bool || x.Shape.Rank() != 1 || x.Shape.Max()[0] >= 1<<31 {
			return Type{}, fmt.Errorf("input %v is not a vector of bools of less than 2^31", x.Type)
		}
		return Type{array.Int64, n.In[0].Shape}, nil
	},
	Lower: lowerPositions,
	Work:  func(n *Node) float64 { return 32 * firstOperandWork(n) },
}}

// lowerPositions counts the true elements up to each position, and searches the counts for each number: in steps of
// a power of a radix, then of the next smaller one.
func lowerPositions(l *Lowering, n *Node, in []Operand) Operand {
	mask := l.Readable(in[0])
	size := l.Extent(mask.Shape.At(0))
	end := l.Extent(mask.Shape.At(0).Minus(extent.Of(1)))
	upTo := l.Map("counts", mask.Shape, RowMajor(1), l.scan(expr.Sum, mask.Shape, RowMajor(1), 0, func(i []expr.Expr) expr.Expr {
		return expr.To(array.Int32, mask.At(i...))
	}))
	step := int64(1)
	for scanRadix*step <= mask.Shape.Max()[0] {
		step *= scanRadix
	}
	before := func([]expr.Expr) expr.Expr { return expr.I(0) }
	for ; step > 0; step /= scanRadix {
		from, width := before, step
		steps := l.Reduce("steps", expr.Sum, mask.Shape, RowMajor(1), extent.Fixed(scanRadix-1), func(i, r []expr.Expr) expr.Expr {
			next := expr.AddE(from(i), expr.MulE(expr.AddE(r[0], expr.I(1)), expr.I(width)))
			// Bounds that are visible here keep reads inside.
			last := expr.MaxE(expr.I(0), expr.MinE(expr.SubE(next, expr.I(1)), end))
			passed := expr.Bin(expr.Le, upTo.At(last), expr.To(array.Int32, i[0]))
			return expr.To(array.Int64, expr.Bin(expr.And, expr.Bin(expr.Le, next, size), passed))
		})
		before = func(i []expr.Expr) expr.Expr { return expr.AddE(from(i), expr.MulE(steps.At(i...), expr.I(width))) }
	}
	return l.Lazy(n.Out, RowMajor(1), func(i []expr.Expr) expr.Expr {
		return expr.MaxE(expr.I(0), expr.MinE(before(i), end))
	})
}
