package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var maxUnpoolDefs = []Def{{
	Name: "MaxUnpool", Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "maxunpool", Infer: inferMaxUnpool, Lower: lowerMaxUnpool,
	Work: func(n *Node) float64 {
		return float64(array.Elements(n.Out.Shape.Max())) * float64(array.Elements(n.In[0].Shape.Max()[2:]))
	},
}}

// lowerMaxIndices computes MaxPool's second result: the position of the largest element in the flattened operand,
// with the last axis fastest, or the first spatial one if storage_order is 1.
func lowerMaxIndices(l *Lowering, n *Node, win window, x Operand) Operand {
	best := slide(l, n, win, x, "best", expr.Maximum, exact)
	rank, shape := x.Shape.Rank(), extent.ShapeOf(win.in...)
	const none = math.MaxInt64
	at := l.Reduce("position", expr.Minimum, n.Out.Shape, ChannelsLast(rank), extent.Fixed(win.kernel...), func(i, r []expr.Expr) expr.Expr {
		xi := slices.Clone(i)
		var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		flat := expr.I(0)
		for k, e := range win.in {
			xi[2+k] = win.at(k, i[2+k], r[k])
			p := expr.SubE(xi[2+k], l.Extent(win.padBegin[k]))
			if win.padBegin[k].Max() > 0 || !win.extent(k).Minus(win.padBegin[k]).AtMost(e) {
				inside = expr.Bin(expr.And, inside, l.inRange(p, e))
			}
			flat = expr.AddE(expr.MulE(flat, l.Extent(e)), p)
		}
		found := expr.Bin(expr.Eq, exact(x.At(xi...)), best.At(i...))
		return expr.Sel(expr.Bin(expr.And, inside, found), flat, expr.I(none))
	})
	size := shape.Elements()
	return l.Lazy(n.Out, at.Layout, func(i []expr.Expr) expr.Expr {
		flat := expr.MinE(at.At(i...), l.Extent(size.Minus(extent.Of(1)))) // windows of NaN alone have no largest element
		if n.Int("storage_order", 0) != 0 {
			flat = l.firstFastest(l.unflatten(flat, shape), shape)
		}
		plane := expr.AddE(expr.MulE(i[0], l.Extent(n.In[0].Shape.At(1))), i[1])
		return expr.AddE(expr.MulE(plane, l.Extent(size)), flat)
	})
}

// firstFastest flattens an index with the first axis fastest.
func (l *Lowering) firstFastest(index []expr.Expr, shape extent.Shape) expr.Expr {
	flat := expr.I(0)
	for k := len(index) - 1; k >= 0; k-- {
		flat = expr.AddE(expr.MulE(flat, l.Extent(shape.At(k))), index[k])
	}
	return flat
}

func inferMaxUnpool(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	rank := x.Shape.Rank() - 2
	if rank < 1 || index.DType != array.Int64 || !x.Shape.Equal(index.Shape) || x.DType == array.Bool || x.Shape.IsEmpty() {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	natural := Get(unpooled(n))
	if !n.Has(2) {
		return Type{x.DType, natural}, nil
	}
	shape := extent.ShapeOf(n.KnownExtents(2, "output_shape")...)
	n.check()
	if shape.Rank() != rank+2 || !shape.Slice(0, 2).Equal(x.Shape.Slice(0, 2)) || slices.ContainsFunc(shape.Extents(), func(e extent.Extent) bool { return e.Min() < 1 }) {
		return Type{}, fmt.Errorf("output_shape %v does not fit %v", shape, x.Type)
	}
	return Type{x.DType, shape}, nil
}

// unpooled returns the shape that a MaxPool with the same attributes reduces to the operand's.
func unpooled(n *Node) (extent.Shape, error) {
	x := n.In[0].Shape
	rank := x.Rank() - 2
	kernel, strides, pads := n.Ints("kernel_shape", nil), n.Ints("strides", nil), n.Ints("pads", make([]int64, 2*rank))
	if strides == nil {
		strides = slices.Repeat([]int64{1}, rank)
	}
	if n.err != nil || len(kernel) != rank || len(strides) != rank || len(pads) != 2*rank {
		return x, fmt.Errorf("kernel_shape %v, strides %v or pads %v do not fit %v", kernel, strides, pads, x)
	}
	shape := slices.Clone(x.Extents())
	for k, e := range shape[2:] {
		for _, v := range []int64{kernel[k], strides[k], pads[k], pads[k+rank]} {
			if v < 0 || v > maxWindow || e.Max() > 1<<40 {
				return x, fmt.Errorf("kernel_shape %v, strides %v or pads %v are out of range", kernel, strides, pads)
			}
		}
		size := e.Minus(extent.Of(1)).Times(extent.Of(strides[k])).Plus(extent.Of(kernel[k] - pads[k] - pads[k+rank]))
		if size.Min() < 1 {
			return x, fmt.Errorf("the result would have extent %v%s", size, raise(size))
		}
		shape[2+k] = size
	}
	return extent.ShapeOf(shape...), nil
}

// lowerMaxUnpool finds, for each element of a plane, the last index of its plane that names it, or zero if there is
// none. Indices refer to the natural shape, regardless of output_shape.
func lowerMaxUnpool(l *Lowering, n *Node, in []Operand) Operand {
	x, index := l.Readable(in[0]), l.Readable(in[1])
	natural := Get(unpooled(n))
	rank := natural.Rank()
	pooled := x.Shape.Slice(2, rank)
	last := l.Reduce("last", expr.Maximum, n.Out.Shape, x.Layout, extent.ShapeOf(pooled.Elements()), func(i, r []expr.Expr) expr.Expr {
		flat := expr.AddE(expr.MulE(i[0], l.Extent(x.Shape.At(1))), i[1])
		var found expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		for k := 2; k < rank; k++ {
			size := natural.At(k)
			flat = expr.AddE(expr.MulE(flat, l.Extent(size)), i[k])
			if !n.Out.Shape.At(k).AtMost(size) {
				found = expr.Bin(expr.And, found, expr.Bin(expr.Lt, i[k], l.Extent(size)))
			}
		}
		at := append(slices.Clone(i[:2]), l.unflatten(r[0], pooled)...)
		found = expr.Bin(expr.And, found, expr.Bin(expr.Eq, index.At(at...), flat))
		return expr.Sel(found, r[0], expr.I(-1))
	})
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		u := last.At(i...)
		at := append(slices.Clone(i[:2]), l.unflatten(expr.MaxE(u, expr.I(0)), pooled)...)
		return expr.Sel(expr.Bin(expr.Le, expr.I(0), u), x.At(at...), expr.Zero(n.Out.DType))
	})
}
