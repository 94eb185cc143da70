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
			return float64(array.Elements(n.Out.Shape.Fixed())) * float64(array.Elements(n.KnownInts(2, "block_shape")))
		},
	},
	moveDef("CenterCropPad", 2, 2, inferCenterCropPad, centerCropPadAt),
}

// blockWindow returns the window of blocks over the image into which they are accumulated.
func blockWindow(n *Node) (window, error) {
	image, block := n.KnownInts(1, "image_shape"), n.KnownInts(2, "block_shape")
	if n.err != nil {
		return window{}, n.err
	}
	for _, e := range image {
		if e < 1 || e > 1<<40 {
			return window{}, fmt.Errorf("image_shape %v is out of range", image)
		}
	}
	return newWindow(n, image, block)
}

func inferCol2Im(n *Node) (Type, error) {
	win, err := blockWindow(n)
	if err != nil {
		return Type{}, err
	}
	x, block := n.In[0].Shape.Fixed(), array.Elements(win.kernel)
	if d := n.In[0].DType; d == array.Bool || len(x) != 3 || len(win.in) == 0 || x[1]%block != 0 || x[2] != array.Elements(win.out) {
		return Type{}, fmt.Errorf("input %v does not fit blocks %v at %v positions", n.In[0].Type, win.kernel, win.out)
	}
	return Type{n.In[0].DType, extent.Fixed(append([]int64{x[0], x[1] / block}, win.in...)...)}, nil
}

// lowerCol2Im finds, for each element of the image and each element of a block, the position that contributes it.
func lowerCol2Im(l *Lowering, n *Node, in []Operand) (Operand, error) {
	win, err := blockWindow(n)
	if err != nil {
		return Operand{}, err
	}
	x := l.Readable(in[0])
	block := array.Elements(win.kernel)
	zero := expr.Zero(wideType(x.DType))
	acc := l.Reduce("col2im", expr.Sum, n.Out.Shape.Fixed(), RowMajor(n.Out.Shape.Rank()), win.kernel, func(i, r []expr.Expr) expr.Expr {
		var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		row, column := expr.I(0), expr.I(0)
		for k := range win.in {
			first := expr.SubE(expr.AddE(i[2+k], expr.I(win.padBegin[k])), expr.MulE(r[k], expr.I(win.dilation[k])))
			at := expr.Bin(expr.FloorDiv, first, expr.I(win.stride[k]))
			inside = expr.Bin(expr.And, inside, expr.InRange(at, 0, win.out[k]))
			if win.stride[k] > 1 {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Eq, expr.Bin(expr.FloorMod, first, expr.I(win.stride[k])), expr.I(0)))
			}
			row = expr.AddE(expr.MulE(row, expr.I(win.kernel[k])), r[k])
			column = expr.AddE(expr.MulE(column, expr.I(win.out[k])), at)
		}
		channel := expr.AddE(expr.MulE(i[1], expr.I(block)), row)
		return expr.Sel(inside, wide(x.At(i[0], channel, column)), zero)
	})
	return narrow(l, n, acc), nil
}

// centred returns the offset of the operand in the result for each axis: negative where it is cropped.
func centred(n *Node) (shift, shape []int64) {
	x := n.In[0].Shape.Fixed()
	shift, shape = make([]int64, len(x)), slices.Clone(x)
	want := n.KnownInts(1, "shape")
	axes := RowMajor(len(x))
	if list := n.Ints("axes", nil); list != nil {
		n.axes(list, len(x))
		axes = axes[:0]
		for _, v := range list {
			axes = append(axes, n.axis(v, len(x)))
		}
	}
	if n.err == nil && len(want) != len(axes) {
		n.fail("shape %v does not fit %d axes", want, len(axes))
	}
	if n.err != nil {
		return shift, shape
	}
	for k, axis := range axes {
		if want[k] < 0 || want[k] > 1<<40 {
			n.fail("shape %v is out of range", want)
			return shift, shape
		}
		shape[axis] = want[k]
		if want[k] >= x[axis] {
			shift[axis] = (want[k] - x[axis]) / 2
		} else {
			shift[axis] = -((x[axis] - want[k]) / 2)
		}
	}
	return shift, shape
}

func inferCenterCropPad(n *Node) (Type, error) {
	_, shape := centred(n)
	return Type{n.In[0].DType, extent.Fixed(shape...)}, n.err
}

func centerCropPadAt(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	shift, shape := centred(n)
	var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
	index := make([]expr.Expr, len(i))
	for k, e := range n.In[0].Shape.Fixed() {
		index[k] = expr.SubE(i[k], expr.I(shift[k]))
		if shape[k] > e {
			inside = expr.Bin(expr.And, inside, expr.InRange(index[k], 0, e))
		}
	}
	return expr.Sel(inside, in[0].At(index...), expr.Zero(n.Out.DType))
}
