package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Parts of a Unique of data, whose slices are the rows of a matrix.
const (
	// UniqueFirst returns for each row the first one equal to it.
	UniqueFirst = "uniquefirst"
	// UniqueRank returns for each row the number of distinct ones before it: by content if "sorted" is set, and by
	// position otherwise. Operand 1 is the result of UniqueFirst.
	UniqueRank = "uniquerank"
)

var uniqueDefs = []Def{
	{
		Name: UniqueFirst, Internal: true, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "unique", Layout: rowMajorResult,
		Infer: inferUniqueRows, Lower: lowerUniqueFirst, Work: uniqueWork,
	},
	{
		Name: UniqueRank, Internal: true, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "unique", Layout: rowMajorResult,
		Infer: inferUniqueRows, Lower: lowerUniqueRank, Work: uniqueWork,
	},
}

func uniqueWork(n *Node) float64 { return 2 * firstOperandWork(n) * float64(n.In[0].Shape.Max()[0]) }

func inferUniqueRows(n *Node) (Type, error) {
	n.Int("sorted", 1)
	if x := n.In[0]; x.Shape.Rank() != 2 || slices.Max(x.Shape.Max()) >= 1<<30 {
		return Type{}, fmt.Errorf("rows %v are too many or too long", x.Type)
	}
	return Type{array.Int64, n.In[0].Shape.Slice(0, 1)}, nil
}

// lowerUniqueFirst compares each row with all.
func lowerUniqueFirst(l *Lowering, n *Node, in []Operand) Operand {
	order := l.rowOrder(in[0])
	first := l.Reduce("first", expr.Minimum, n.Out.Shape, RowMajor(1), n.Out.Shape, func(i, r []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Eq, order(i[0], r[0]), i32(0)), r[0], i[0])
	})
	return first
}

// lowerUniqueRank counts the earlier rows that are the first of their kind.
func lowerUniqueRank(l *Lowering, n *Node, in []Operand) Operand {
	order, first := l.rowOrder(in[0]), l.Readable(in[1])
	earlier := func(i, r expr.Expr) expr.Expr { return expr.Bin(expr.Lt, r, first.At(i)) }
	if n.Int("sorted", 1) != 0 {
		earlier = func(i, r expr.Expr) expr.Expr { return expr.Bin(expr.Lt, order(r, i), i32(0)) }
	}
	rank := l.Reduce("rank", expr.Sum, n.Out.Shape, RowMajor(1), n.Out.Shape, func(i, r []expr.Expr) expr.Expr {
		isFirst := expr.Bin(expr.Eq, first.At(r[0]), r[0])
		return expr.To(array.Int64, expr.Bin(expr.And, isFirst, earlier(i[0], r[0])))
	})
	return rank
}

// rowOrder compares two rows of a matrix by their first difference: negative, zero or positive, as i32. NaN equals
// NaN and comes first.
func (l *Lowering) rowOrder(o Operand) func(a, b expr.Expr) expr.Expr {
	x := l.Readable(o)
	rows, width := x.Shape.At(0), x.Shape.Slice(1, 2)
	if width.At(0).Is(1) {
		return func(a, b expr.Expr) expr.Expr { return elementOrder(x.At(a, expr.I(0)), x.At(b, expr.I(0))) }
	}
	// A difference is twice its place, plus one if the first row is the larger: the smallest decides.
	const none = 1<<31 - 1
	first := l.Reduce("difference", expr.Minimum, extent.ShapeOf(rows, rows), RowMajor(2), width, func(i, r []expr.Expr) expr.Expr {
		order := elementOrder(x.At(i[0], r[0]), x.At(i[1], r[0]))
		place := expr.To(array.Int32, expr.MulE(r[0], expr.I(2)))
		larger := expr.Sel(expr.Bin(expr.Lt, i32(0), order), expr.AddE(place, i32(1)), place)
		return expr.Sel(expr.Bin(expr.Eq, order, i32(0)), i32(none), larger)
	})
	return func(a, b expr.Expr) expr.Expr {
		d := first.At(a, b)
		odd := expr.Bin(expr.FloorMod, d, i32(2))
		sign := expr.SubE(expr.MulE(odd, i32(2)), i32(1))
		return expr.Sel(expr.Bin(expr.Eq, d, i32(none)), i32(0), sign)
	}
}

// elementOrder returns -1, 0 or 1.
func elementOrder(a, b expr.Expr) expr.Expr {
	a, b = exact(a), exact(b)
	less, greater := expr.Bin(expr.Lt, a, b), expr.Bin(expr.Lt, b, a)
	if a.DType().IsFloat() {
		less = expr.Bin(expr.Or, less, expr.Bin(expr.And, expr.Un(expr.IsNaN, a), expr.Bin(expr.Eq, b, b)))
		greater = expr.Bin(expr.Or, greater, expr.Bin(expr.And, expr.Un(expr.IsNaN, b), expr.Bin(expr.Eq, a, a)))
	}
	return expr.SubE(expr.To(array.Int32, greater), expr.To(array.Int32, less))
}

func i32(v int64) expr.Expr { return &expr.Int{Value: v, Type: array.Int32} }
