package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Parts of a NonMaxSuppression. Scores are (batch, classes, boxes), -inf for removed boxes; corners are (batch, 4,
// boxes): both lower ends, then both upper ones.
const (
	// Corners returns the corners of boxes (batch, boxes, 4), given as any two opposite corners or, if
	// "center_point_box" is set, as centres and sizes.
	Corners = "corners"
	// BestBox returns for each class the box with the highest score, the first of equal ones; -1 if all are
	// removed. Operand 1 holds the numbers of boxes, in the scores' shape, unless these are 0, 1, 2 ...
	BestBox = "bestbox"
	// BoxCorners returns the corners, operand 0, of boxes by their numbers, operand 1, (batch, classes) or (batch,
	// classes, boxes): (batch, classes, 4) or (batch, classes, 4, boxes).
	BoxCorners = "boxcorners"
	// Suppress removes from the scores the box that BestBox found and those that overlap it, with an intersection
	// above a share of their union. Operands are scores, corners, the box, its corners, the share, a scalar, and
	// the numbers of boxes. If these are given, corners are each class's own, (batch, classes, 4, boxes).
	Suppress = "suppress"
)

// suppressionDefs each form their own kernel: a look-up in one would otherwise be repeated for each element of the
// next.
var suppressionDefs = []Def{
	{
		Name: Corners, Internal: true, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "corners", Layout: rowMajorResult,
		Infer: func(n *Node) (Type, error) {
			x := n.In[0]
			return Type{x.DType, extent.ShapeOf(x.Shape.At(0), extent.Of(4), x.Shape.At(1))}, nil
		},
		Lower: lowerCorners,
	},
	{
		Name: BestBox, Internal: true, Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "best", Layout: rowMajorResult,
		Infer: inferBestBox, Lower: lowerBestBox, Work: func(n *Node) float64 { return 2 * firstOperandWork(n) },
	},
	{
		Name: BoxCorners, Internal: true, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "box", Layout: rowMajorResult,
		Infer: func(n *Node) (Type, error) {
			boxes := n.In[1].Shape
			return Type{n.In[0].DType, extent.Concat(boxes.Slice(0, 2), extent.Fixed(4), boxes.Slice(2, boxes.Rank()))}, nil
		},
		Lower: lowerBoxCorners,
	},
	{
		Name: Suppress, Internal: true, Kind: Reduction, MinIn: 5, MaxIn: 6, Label: "suppress", Layout: rowMajorResult,
		Infer: inferSuppress, Lower: lowerSuppress, Work: func(n *Node) float64 { return 20 * firstOperandWork(n) },
	},
}

func lowerCorners(l *Lowering, n *Node, in []Operand) Operand {
	boxes := l.Readable(in[0])
	return l.Map("corners", n.Out.Shape, RowMajor(3), func(i []expr.Expr) expr.Expr {
		upper := expr.Bin(expr.Le, expr.I(2), i[1])
		axis := expr.Sel(upper, expr.SubE(i[1], expr.I(2)), i[1])
		a, b := boxes.At(i[0], i[2], axis), boxes.At(i[0], i[2], expr.AddE(axis, expr.I(2)))
		if n.Int("center_point_box", 0) == 0 {
			return expr.Sel(upper, expr.MaxE(a, b), expr.MinE(a, b))
		}
		half := expr.MulE(b, expr.F(boxes.DType, 0.5))
		return expr.Sel(upper, expr.AddE(a, half), expr.SubE(a, half))
	})
}

func lowerBoxCorners(l *Lowering, n *Node, in []Operand) Operand {
	corners, best := l.Readable(in[0]), l.Readable(in[1])
	return l.Map("box", n.Out.Shape, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr {
		return corners.At(i[0], i[2], l.position(best.At(slices.Concat(i[:2], i[3:])...), corners.Shape.At(2)))
	})
}

func inferBestBox(n *Node) (Type, error) {
	x := n.In[0]
	if x.Shape.Rank() != 3 || x.Shape.Max()[2] >= 1<<31 {
		return Type{}, fmt.Errorf("scores %v have not three axes, or too many boxes", x.Type)
	}
	if n.Has(1) && !n.In[1].Shape.Equal(x.Shape) {
		return Type{}, fmt.Errorf("numbers %v do not fit scores %v", n.In[1].Type, x.Type)
	}
	return Type{array.Int32, n.In[0].Shape.Slice(0, 2)}, nil
}

func inferSuppress(n *Node) (Type, error) {
	scores, corners, best := n.In[0].Shape, n.In[1].Shape, n.In[2].Shape
	want := scores.With(1, extent.Of(4))
	if n.Has(5) {
		want = extent.Concat(scores.Slice(0, 2), want.Slice(1, 3))
	}
	if !corners.Equal(want) || !best.Equal(scores.Slice(0, 2)) || n.Has(5) && !n.In[5].Shape.Equal(scores) {
		return Type{}, fmt.Errorf("boxes %v and %v do not fit scores %v", corners, best, scores)
	}
	return n.In[0].Type, nil
}

func lowerBestBox(l *Lowering, n *Node, in []Operand) Operand {
	scores, number, last := l.Readable(in[0]), boxNumbers(l, n, in, 1), i32(math.MaxInt32)
	boxes := scores.Shape.Slice(2, 3)
	if end := boxes.At(0).Minus(extent.Of(1)); end.IsOpen() && !n.Has(1) {
		last = expr.To(array.Int32, l.Extent(end))
	} else if !n.Has(1) {
		last = i32(end.Max())
	}
	highest := l.Reduce("highest", expr.Maximum, n.Out.Shape, RowMajor(2), boxes, func(i, r []expr.Expr) expr.Expr {
		return scores.At(i[0], i[1], r[0])
	})
	place := l.Reduce("place", expr.Minimum, n.Out.Shape, RowMajor(2), boxes, func(i, r []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Eq, scores.At(i[0], i[1], r[0]), highest.At(i...)), number(i[0], i[1], r[0]), last)
	})
	return l.Lazy(n.Out, RowMajor(2), func(i []expr.Expr) expr.Expr {
		out := expr.Bin(expr.Eq, highest.At(i...), expr.F(scores.DType, math.Inf(-1)))
		return expr.Sel(out, i32(-1), place.At(i...))
	})
}

// boxNumbers returns operand k as 32 bits, or 0, 1, 2 ... if it was omitted.
func boxNumbers(l *Lowering, n *Node, in []Operand, k int) func(i ...expr.Expr) expr.Expr {
	if !n.Has(k) {
		return func(i ...expr.Expr) expr.Expr { return expr.To(array.Int32, i[2]) }
	}
	numbers := l.Readable(in[k])
	return func(i ...expr.Expr) expr.Expr { return expr.To(array.Int32, numbers.At(i...)) }
}

// lowerSuppress keeps boxes without an area, which overlap nothing.
func lowerSuppress(l *Lowering, n *Node, in []Operand) Operand {
	scores, corners, best := l.Readable(in[0]), l.Readable(in[1]), l.Readable(in[2])
	chosen, limit, number := l.Readable(in[3]), l.Readable(in[4]), boxNumbers(l, n, in, 5)
	return l.Map("suppress", n.Out.Shape, RowMajor(3), func(i []expr.Expr) expr.Expr {
		own := func(k int64) expr.Expr {
			if n.Has(5) {
				return corners.At(i[0], i[1], expr.I(k), i[2])
			}
			return corners.At(i[0], expr.I(k), i[2])
		}
		other := func(k int64) expr.Expr { return chosen.At(i[0], i[1], expr.I(k)) }
		shared := func(axis int64) expr.Expr {
			begin, end := expr.MaxE(own(axis), other(axis)), expr.MinE(own(axis+2), other(axis+2))
			return expr.MaxE(expr.SubE(end, begin), expr.Zero(scores.DType))
		}
		both := expr.MulE(shared(0), shared(1))
		union := expr.SubE(expr.AddE(boxArea(own), boxArea(other)), both)
		overlaps := expr.Bin(expr.And, expr.Bin(expr.Lt, expr.Zero(scores.DType), both),
			expr.Bin(expr.Lt, limit.At(zeros(limit.Shape.Rank())...), expr.DivE(both, union)))
		itself := expr.Bin(expr.Eq, number(i...), best.At(i[0], i[1]))
		return expr.Sel(expr.Bin(expr.Or, itself, overlaps), expr.F(scores.DType, math.Inf(-1)), scores.At(i...))
	})
}

// boxArea returns the area of a box by its corners.
func boxArea(corner func(k int64) expr.Expr) expr.Expr {
	return expr.MulE(expr.SubE(corner(2), corner(0)), expr.SubE(corner(3), corner(1)))
}
