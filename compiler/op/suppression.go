package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// The operators below are parts of a NonMaxSuppression. Scores are (batch, classes, boxes), of which those that are
// out are -inf; corners are (batch, 4, boxes): both lower ends, then both upper ones.
const (
	// BestBox is for each class the box with the highest score, the first of equal ones; -1 where all are out.
	BestBox = "bestbox"
	// Suppress takes out the box that BestBox found, operand 2, and those that overlap it: whose intersection is more
	// than operand 3, a scalar, of their union. Operands 0 and 1 are scores and corners.
	Suppress = "suppress"
)

var suppressionDefs = []Def{
	{
		Name: BestBox, Internal: true, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "best", Layout: rowMajorResult,
		Infer: func(n *Node) (Type, error) { return Type{array.Int64, n.In[0].Shape[:2]}, nil },
		Lower: lowerBestBox, Work: func(n *Node) float64 { return 2 * firstOperandWork(n) },
	},
	moveDef(Suppress, 4, 4, func(n *Node) (Type, error) {
		scores, corners, best := n.In[0].Shape, n.In[1].Shape, n.In[2].Shape
		if !sameShape(corners, []int64{scores[0], 4, scores[2]}) || !sameShape(best, scores[:2]) {
			return Type{}, fmt.Errorf("boxes %v and %v do not fit scores %v", corners, best, scores)
		}
		return n.In[0].Type, nil
	}, suppressAt).internal(),
}

func lowerBestBox(l *Lowering, n *Node, in []Operand) (Operand, error) {
	scores := l.Readable(in[0])
	boxes := scores.Shape[2]
	highest := l.Reduce("highest", expr.Maximum, n.Out.Shape, RowMajor(2), []int64{boxes}, func(i, r []expr.Expr) expr.Expr {
		return scores.At(i[0], i[1], r[0])
	})
	place := l.Reduce("place", expr.Minimum, n.Out.Shape, RowMajor(2), []int64{boxes}, func(i, r []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Eq, scores.At(i[0], i[1], r[0]), highest.At(i...)), r[0], expr.I(boxes-1))
	})
	return l.Lazy(n.Out, RowMajor(2), func(i []expr.Expr) expr.Expr {
		out := expr.Bin(expr.Eq, highest.At(i...), expr.F(scores.DType, math.Inf(-1)))
		return expr.Sel(out, expr.I(-1), place.At(i...))
	}), nil
}

// suppressAt leaves boxes without an area alone, which overlap nothing.
func suppressAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	scores, corners, best := in[0], in[1], in[2].At(i[0], i[1])
	chosen := position(best, n.In[0].Shape[2])
	extent := func(axis int64, box expr.Expr) expr.Expr {
		return expr.SubE(corners.At(i[0], expr.I(axis+2), box), corners.At(i[0], expr.I(axis), box))
	}
	shared := func(axis int64) expr.Expr {
		begin := expr.MaxE(corners.At(i[0], expr.I(axis), i[2]), corners.At(i[0], expr.I(axis), chosen))
		end := expr.MinE(corners.At(i[0], expr.I(axis+2), i[2]), corners.At(i[0], expr.I(axis+2), chosen))
		return expr.MaxE(expr.SubE(end, begin), expr.Zero(scores.DType))
	}
	area := func(box expr.Expr) expr.Expr { return expr.MulE(extent(0, box), extent(1, box)) }
	both := expr.MulE(shared(0), shared(1))
	union := expr.SubE(expr.AddE(area(i[2]), area(chosen)), both)
	overlaps := expr.Bin(expr.And, expr.Bin(expr.Lt, expr.Zero(scores.DType), both),
		expr.Bin(expr.Lt, in[3].At(zeros(len(n.In[3].Shape))...), expr.DivE(both, union)))
	out := expr.Bin(expr.Or, expr.Bin(expr.Eq, i[2], best), overlaps)
	return expr.Sel(out, expr.F(scores.DType, math.Inf(-1)), scores.At(i...))
}
