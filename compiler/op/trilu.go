package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

var triluDefs = []Def{moveDef("Trilu", 1, 2, inferTrilu, triluAt)}

func inferTrilu(n *Node) (Type, error) {
	n.Int("upper", 1)
	if n.In[0].Shape.Rank() < 2 {
		return Type{}, fmt.Errorf("input %v is not a matrix", n.In[0].Type)
	}
	if n.Has(1) && (n.In[1].DType != array.Int64 || !n.In[1].Shape.Elements().Is(1)) {
		return Type{}, fmt.Errorf("input 1 (k) is %v and not a scalar of type i64", n.In[1].Type)
	}
	return n.In[0].Type, nil
}

// triluAt keeps the elements on the k-th diagonal, and above or below it.
func triluAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	row, column := i[len(i)-2], i[len(i)-1]
	diagonal := row
	if n.Has(1) {
		k := in[1].At(zeros(in[1].Shape.Rank())...)
		const far = 1 << 40 // beyond every matrix, so that the sum cannot wrap around
		diagonal = expr.AddE(row, expr.MinE(expr.MaxE(k, expr.I(-far)), expr.I(far)))
	}
	kept := expr.Bin(expr.Le, column, diagonal)
	if n.Int("upper", 1) != 0 {
		kept = expr.Bin(expr.Le, diagonal, column)
	}
	return expr.Sel(kept, in[0].At(i...), expr.Zero(n.Out.DType))
}

// zeros returns the first index of a value of the given rank.
func zeros(rank int) []expr.Expr {
	return slices.Repeat([]expr.Expr{expr.I(0)}, rank)
}
