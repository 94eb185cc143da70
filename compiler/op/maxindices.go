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
		return float64(array.Elements(n.Out.Shape.Fixed())) * float64(array.Elements(n.In[0].Shape.Fixed()[2:]))
	},
}}

// lowerMaxIndices computes MaxPool's second result: the position of the largest element in the flattened operand,
// with the last axis fastest, or the first spatial one if storage_order is 1.
func lowerMaxIndices(l *Lowering, n *Node, win window, x Operand) Operand {
	best := slide(l, n, win, x, "best", expr.Maximum, exact)
	rank, shape := x.Shape.Rank(), n.In[0].Shape.Fixed()
	const none = math.MaxInt64
	at := l.Reduce("position", expr.Minimum, n.Out.Shape.Fixed(), ChannelsLast(rank), win.kernel, func(i, r []expr.Expr) expr.Expr {
		xi := slices.Clone(i)
		var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		flat := expr.I(0)
		for k, e := range win.in {
			xi[2+k] = win.at(k, i[2+k], r[k])
			p := expr.SubE(xi[2+k], expr.I(win.padBegin[k]))
			if win.padBegin[k] > 0 || win.extent(k)-win.padBegin[k] > e {
				inside = expr.Bin(expr.And, inside, expr.InRange(p, 0, e))
			}
			flat = expr.AddE(expr.MulE(flat, expr.I(e)), p)
		}
		found := expr.Bin(expr.Eq, exact(x.At(xi...)), best.At(i...))
		return expr.Sel(expr.Bin(expr.And, inside, found), flat, expr.I(none))
	})
	size := array.Elements(win.in)
	return l.Lazy(n.Out, at.Layout, func(i []expr.Expr) expr.Expr {
		flat := expr.MinE(at.At(i...), expr.I(size-1)) // windows of NaN alone have no largest element
		if n.Int("storage_order", 0) != 0 {
			flat = firstFastest(unflatten(flat, win.in), win.in)
		}
		plane := expr.AddE(expr.MulE(i[0], expr.I(shape[1])), i[1])
		return expr.AddE(expr.MulE(plane, expr.I(size)), flat)
	})
}

// firstFastest flattens an index with the first axis fastest.
func firstFastest(index []expr.Expr, shape []int64) expr.Expr {
	flat := expr.I(0)
	for k := len(index) - 1; k >= 0; k-- {
		flat = expr.AddE(expr.MulE(flat, expr.I(shape[k])), index[k])
	}
	return flat
}

func inferMaxUnpool(n *Node) (Type, error) {
	x, index := n.In[0], n.In[1]
	rank := x.Shape.Rank() - 2
	if rank < 1 || index.DType != array.Int64 || !sameShape(x.Shape.Fixed(), index.Shape.Fixed()) || x.DType == array.Bool || slices.Contains(x.Shape.Fixed(), 0) {
		return Type{}, fmt.Errorf("indices %v do not fit %v", index.Type, x.Type)
	}
	natural, err := unpooled(n)
	if err != nil {
		return Type{}, err
	}
	if !n.Has(2) {
		return Type{x.DType, extent.Fixed(natural...)}, nil
	}
	shape := n.KnownInts(2, "output_shape")
	if n.err != nil {
		return Type{}, n.err
	}
	if len(shape) != rank+2 || !sameShape(shape[:2], x.Shape.Fixed()[:2]) || slices.Min(shape) < 1 {
		return Type{}, fmt.Errorf("output_shape %v does not fit %v", shape, x.Type)
	}
	return Type{x.DType, extent.Fixed(shape...)}, nil
}

// unpooled returns the shape that a MaxPool with the same attributes reduces to the operand's.
func unpooled(n *Node) ([]int64, error) {
	x := n.In[0].Shape.Fixed()
	rank := len(x) - 2
	kernel, strides, pads := n.Ints("kernel_shape", nil), n.Ints("strides", nil), n.Ints("pads", make([]int64, 2*rank))
	if strides == nil {
		strides = slices.Repeat([]int64{1}, rank)
	}
	if n.err != nil || len(kernel) != rank || len(strides) != rank || len(pads) != 2*rank {
		return nil, fmt.Errorf("kernel_shape %v, strides %v or pads %v do not fit %v", kernel, strides, pads, x)
	}
	shape := slices.Clone(x[:2])
	for k, e := range x[2:] {
		for _, v := range []int64{kernel[k], strides[k], pads[k], pads[k+rank]} {
			if v < 0 || v > maxWindow || e > 1<<40 {
				return nil, fmt.Errorf("kernel_shape %v, strides %v or pads %v are out of range", kernel, strides, pads)
			}
		}
		extent := (e-1)*strides[k] + kernel[k] - pads[k] - pads[k+rank]
		if extent < 1 {
			return nil, fmt.Errorf("the result would have extent %d", extent)
		}
		shape = append(shape, extent)
	}
	return shape, nil
}

// lowerMaxUnpool finds, for each element of a plane, the last index of its plane that names it, or zero if there is
// none. Indices refer to the natural shape, regardless of output_shape.
func lowerMaxUnpool(l *Lowering, n *Node, in []Operand) (Operand, error) {
	x, index := l.Readable(in[0]), l.Readable(in[1])
	natural, err := unpooled(n)
	if err != nil {
		return Operand{}, err
	}
	spatial, pooled := natural[2:], x.Shape.Fixed()[2:]
	last := l.Reduce("last", expr.Maximum, n.Out.Shape.Fixed(), x.Layout, []int64{array.Elements(pooled)}, func(i, r []expr.Expr) expr.Expr {
		flat := expr.AddE(expr.MulE(i[0], expr.I(x.Shape.Fixed()[1])), i[1])
		var found expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		for k, e := range spatial {
			flat = expr.AddE(expr.MulE(flat, expr.I(e)), i[2+k])
			if n.Out.Shape.Fixed()[2+k] > e {
				found = expr.Bin(expr.And, found, expr.Bin(expr.Lt, i[2+k], expr.I(e)))
			}
		}
		at := append(slices.Clone(i[:2]), unflatten(r[0], pooled)...)
		found = expr.Bin(expr.And, found, expr.Bin(expr.Eq, index.At(at...), flat))
		return expr.Sel(found, r[0], expr.I(-1))
	})
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		u := last.At(i...)
		at := append(slices.Clone(i[:2]), unflatten(expr.MaxE(u, expr.I(0)), pooled)...)
		return expr.Sel(expr.Bin(expr.Le, expr.I(0), u), x.At(at...), expr.Zero(n.Out.DType))
	}), nil
}
