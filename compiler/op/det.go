package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var detDefs = []Def{{
	Name: "Det", Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "det", Infer: inferDet, Lower: lowerDet, Layout: rowMajorResult,
	Work: func(n *Node) float64 {
		x := n.In[0].Shape.Max()
		return 2 * firstOperandWork(n) * float64(x[len(x)-1])
	},
}}

// maxDet limits the size of matrices, since each column is a stage of its own.
const maxDet = 16

func inferDet(n *Node) (Type, error) {
	x := n.In[0].Shape
	last := x.Rank() - 1
	if last < 1 || !n.In[0].DType.IsFloat() || x.At(last) != x.At(last-1) {
		return Type{}, fmt.Errorf("input %v is not a square matrix of floating point type", n.In[0].Type)
	}
	if size := x.At(last); size.IsOpen() || size.Max() < 1 || size.Max() > maxDet {
		return Type{}, fmt.Errorf("determinants of %v by %v are not supported: 1 to %d are", size, size, maxDet)
	}
	return Type{n.In[0].DType, x.Slice(0, last-1)}, nil
}

// lowerDet is Gaussian elimination with partial pivoting: for each column, the largest element below is exchanged
// to the diagonal, which changes the sign.
func lowerDet(l *Lowering, n *Node, in []Operand) Operand {
	x := l.Readable(in[0])
	rank := x.Shape.Rank()
	size, batch := x.Shape.Max()[rank-1], x.Shape.Slice(0, rank-2)

	element := func(i []expr.Expr, row, column expr.Expr) []expr.Expr {
		return append(append([]expr.Expr{}, i[:rank-2]...), row, column)
	}
	at := func(i []expr.Expr) expr.Expr { return wide(x.At(i...)) }
	var determinant func(i []expr.Expr) expr.Expr
	for k := range size {
		current, column, below := at, expr.I(k), []int64{size - k}
		magnitude := func(i, r []expr.Expr) expr.Expr {
			return expr.Un(expr.Abs, current(element(i, expr.AddE(r[0], column), column)))
		}
		largest := l.Reduce("largest", expr.Maximum, batch, RowMajor(rank-2), extent.Fixed(below...), magnitude)
		pivot := l.Reduce("pivot", expr.Minimum, batch, RowMajor(rank-2), extent.Fixed(below...), func(i, r []expr.Expr) expr.Expr {
			return expr.Sel(expr.Bin(expr.Eq, magnitude(i, r), largest.At(i...)), expr.AddE(r[0], column), expr.I(size-1))
		})
		swapped := func(i []expr.Expr) expr.Expr {
			p, row := pivot.At(i[:rank-2]...), i[rank-2]
			from := expr.Sel(expr.Bin(expr.Eq, row, column), p, expr.Sel(expr.Bin(expr.Eq, row, p), column, row))
			return current(element(i, from, i[rank-1]))
		}
		before := determinant
		factor := func(i []expr.Expr) expr.Expr {
			d := swapped(element(i, column, column))
			d = expr.Sel(expr.Bin(expr.Eq, pivot.At(i...), column), d, expr.Un(expr.Neg, d))
			if before == nil {
				return d
			}
			return expr.MulE(before(i), d)
		}
		product := l.Map("determinant", batch, RowMajor(rank-2), factor)
		determinant = func(i []expr.Expr) expr.Expr { return product.At(i...) }
		if k == size-1 {
			break
		}
		eliminated := l.Map("eliminated", x.Shape, RowMajor(rank), func(i []expr.Expr) expr.Expr {
			d := swapped(element(i, column, column))
			ratio := expr.DivE(swapped(element(i, i[rank-2], column)), d)
			ratio = expr.Sel(expr.Bin(expr.Eq, d, like(d, 0)), like(d, 0), ratio) // a column of zeros
			e := swapped(i)
			reduced := expr.SubE(e, expr.MulE(ratio, swapped(element(i, column, i[rank-1]))))
			return expr.Sel(expr.Bin(expr.Lt, column, i[rank-2]), reduced, e)
		})
		at = func(i []expr.Expr) expr.Expr { return eliminated.At(i...) }
	}
	return l.Lazy(n.Out, RowMajor(rank-2), func(i []expr.Expr) expr.Expr { return expr.To(n.Out.DType, determinant(i)) })
}
