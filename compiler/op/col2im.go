package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var col2ImDefs = []Def{
	{
		Name: "Col2Im", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "col2im", Infer: inferCol2Im, Lower: lowerCol2Im, Layout: rowMajorResult,
		Work: func(n *Node) float64 {
			return float64(array.Elements(n.Out.Shape.Max())) * float64(array.Elements(n.KnownInts(2, "block_shape")))
		},
	},
	moveDef("CenterCropPad", 2, 2, inferCenterCropPad, centerCropPadAt),
}

// blockWindow returns the window of blocks over the image into which they are accumulated.
func blockWindow(n *Node) (window, error) {
	image, block := n.KnownExtents(1, "image_shape"), n.KnownInts(2, "block_shape")
	n.check()
	for _, e := range image {
		if e.Min() < 1 || e.Max() > 1<<40 {
			return window{}, fmt.Errorf("image_shape %v is out of range", image)
		}
	}
	return newWindow(n, extent.ShapeOf(image...), block)
}

func inferCol2Im(n *Node) (Type, error) {
	win := Get(blockWindow(n))
	x, block := n.In[0].Shape, extent.Of(array.Elements(win.kernel))
	if d := n.In[0].DType; d == array.Bool || x.Rank() != 3 || len(win.in) == 0 || !x.At(1).Mod(block).Is(0) || x.At(2) != extent.ShapeOf(win.out...).Elements() {
		return Type{}, fmt.Errorf("input %v does not fit blocks %v at %v positions", n.In[0].Type, win.kernel, win.out)
	}
	return Type{n.In[0].DType, extent.Concat(extent.ShapeOf(x.At(0), x.At(1).Over(block)), extent.ShapeOf(win.in...))}, nil
}

// lowerCol2Im finds, for each element of the image and each element of a block, the position that contributes it.
func lowerCol2Im(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(blockWindow(n))
	x := l.Readable(in[0])
	block := array.Elements(win.kernel)
	zero := expr.Zero(wideType(x.DType))
	acc := l.Reduce("col2im", expr.Sum, n.Out.Shape, RowMajor(n.Out.Shape.Rank()), extent.Fixed(win.kernel...), func(i, r []expr.Expr) expr.Expr {
		var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		row, column := expr.I(0), expr.I(0)
		for k := range win.in {
			first := expr.SubE(expr.AddE(i[2+k], l.Extent(win.padBegin[k])), expr.MulE(r[k], expr.I(win.dilation[k])))
			at := expr.Bin(expr.FloorDiv, first, expr.I(win.stride[k]))
			inside = expr.Bin(expr.And, inside, l.inRange(at, win.out[k]))
			if win.stride[k] > 1 {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Eq, expr.Bin(expr.FloorMod, first, expr.I(win.stride[k])), expr.I(0)))
			}
			row = expr.AddE(expr.MulE(row, expr.I(win.kernel[k])), r[k])
			column = expr.AddE(expr.MulE(column, l.Extent(win.out[k])), at)
		}
		channel := expr.AddE(expr.MulE(i[1], expr.I(block)), row)
		return expr.Sel(inside, wide(x.At(i[0], channel, column)), zero)
	})
	return narrow(l, n, acc)
}

// centred returns the offset of the operand in the result for each axis: negative where it is cropped.
func centred(n *Node) (shift, shape []extent.Extent) {
	x := n.In[0].Shape
	shift, shape = make([]extent.Extent, x.Rank()), slices.Clone(x.Extents())
	want := n.KnownExtents(1, "shape")
	axes := RowMajor(x.Rank())
	if list := n.Ints("axes", nil); list != nil {
		n.axes(list, x.Rank())
		axes = axes[:0]
		for _, v := range list {
			axes = append(axes, n.axis(v, x.Rank()))
		}
	}
	if n.err == nil && len(want) != len(axes) {
		n.fail("shape %v does not fit %d axes", want, len(axes))
	}
	if n.err != nil {
		return shift, shape
	}
	zero, two := extent.Of(0), extent.Of(2)
	for k, axis := range axes {
		if want[k].Min() < 0 || want[k].Max() > 1<<40 {
			n.fail("shape %v is out of range", want)
			return shift, shape
		}
		shape[axis] = want[k]
		added := want[k].Minus(x.At(axis))
		shift[axis] = added.Most(zero).Over(two).Minus(zero.Minus(added).Most(zero).Over(two))
	}
	return shift, shape
}

func inferCenterCropPad(n *Node) (Type, error) {
	_, shape := centred(n)
	return Type{n.In[0].DType, extent.ShapeOf(shape...)}, n.err
}

func centerCropPadAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	shift, shape := centred(n)
	var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
	index := make([]expr.Expr, len(i))
	for k, e := range n.In[0].Shape.Extents() {
		index[k] = expr.SubE(i[k], l.Extent(shift[k]))
		if !shape[k].AtMost(e) {
			inside = expr.Bin(expr.And, inside, l.inRange(index[k], e))
		}
	}
	return expr.Sel(inside, in[0].At(index...), expr.Zero(n.Out.DType))
}
