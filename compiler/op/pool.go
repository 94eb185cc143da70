package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var poolDefs = []Def{
	ofChannels(poolDef("MaxPool", lowerMaxPool, "maxpool")).with(Traits{Tiled: true, Selects: true}),
	ofChannels(poolDef("AveragePool", lowerAveragePool, "avgpool")).with(Traits{Tiled: true}),
	ofChannels(globalPoolDef("GlobalMaxPool", lowerGlobalMaxPool, "globalmaxpool")).with(Traits{Selects: true, Once: true}),
	ofChannels(globalPoolDef("GlobalAveragePool", lowerGlobalAveragePool, "globalavgpool")).with(Traits{Once: true}),
	ofChannels(integerPoolDef(poolDef(WindowSum, lowerWindowSum, "avgpool"), inferPool)).with(Traits{Tiled: true}),
	ofChannels(integerPoolDef(globalPoolDef(ImageSum, lowerImageSum, "globalavgpool"), inferImage)).with(Traits{Once: true}),
}

func ofChannels(d Def) Def {
	d.ChannelsOut = true
	return d
}

func poolDef(name string, lower func(*Lowering, *Node, []Operand) Operand, label string) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: label,
		Infer: inferPool, Lower: lower, Layout: channelsLastResult,
		Work: func(n *Node) float64 {
			return float64(array.Elements(n.Out.Shape.Max())) * float64(array.Elements(n.Ints("kernel_shape", nil)))
		},
		Detail: func(n *Node) string { return windowDetail(poolWindow(n)) },
	}
}

func poolWindow(n *Node) (window, error) {
	x := n.In[0].Shape
	return newWindow(n, x.Slice(2, x.Rank()), n.Ints("kernel_shape", nil))
}

func inferPool(n *Node) (Type, error) {
	d := Get(numbers(n))
	x := n.In[0].Shape
	if x.Rank() < 3 {
		return Type{}, fmt.Errorf("input %v has no spatial axes", x)
	}
	win := Get(poolWindow(n))
	n.Int("storage_order", 0)
	if n.Output > 0 {
		d = array.Int64
	}
	return Type{d, win.windows(x.At(0), x.At(1))}, nil
}

// slide combines a term of each element in each window of the padded x.
func slide(l *Lowering, n *Node, win window, x Operand, name string, c expr.Combiner, term termFn) Operand {
	rank := x.Shape.Rank()
	return l.Reduce(name, c, n.Out.Shape, ChannelsLast(rank), extent.Fixed(win.kernel...), func(i, r []expr.Expr) expr.Expr {
		xi := append([]expr.Expr{}, i...)
		for k := range win.in {
			xi[2+k] = win.at(k, i[2+k], r[k])
		}
		return term(x.At(xi...))
	})
}

func lowerMaxPool(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(poolWindow(n))
	x := win.pad(l, in[0], expr.Lowest(in[0].DType))
	if n.Output > 0 {
		return lowerMaxIndices(l, n, win, x)
	}
	return narrow(l, n, slide(l, n, win, x, "maxpool", expr.Maximum, exact))
}

// narrow rounds a value computed in a wider type to the result's.
func narrow(l *Lowering, n *Node, o Operand) Operand {
	if o.DType == n.Out.DType {
		return o
	}
	return l.Lazy(n.Out, o.Layout, func(i []expr.Expr) expr.Expr { return expr.To(n.Out.DType, o.At(i...)) })
}

func lowerAveragePool(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(poolWindow(n))
	x := win.pad(l, in[0], expr.Zero(in[0].DType))
	sum := slide(l, n, win, x, "poolsum", expr.Sum, exact)
	includePad := n.Int("count_include_pad", 0) != 0
	return l.Lazy(n.Out, sum.Layout, func(i []expr.Expr) expr.Expr {
		count := expr.I(1)
		for k := range win.in {
			count = expr.MulE(count, win.count(l, k, i[2+k], includePad))
		}
		e := sum.At(i...)
		if c, ok := count.(*expr.Int); ok {
			return expr.To(n.Out.DType, expr.MulE(e, expr.F(e.DType(), 1/float64(c.Value))))
		}
		return expr.To(n.Out.DType, expr.DivE(e, expr.To(e.DType(), count)))
	})
}

// count returns the number of kernel elements of output o that count along axis k: those inside the operand, or
// inside its padding too.
func (w *window) count(l *Lowering, k int, o expr.Expr, includePad bool) expr.Expr {
	before, limit := w.padBegin[k], w.in[k]
	if includePad {
		before, limit = extent.Of(0), w.padBegin[k].Plus(w.in[k]).Plus(w.padEnd[k])
	}
	d := w.dilation[k]
	start := expr.SubE(expr.MulE(o, expr.I(w.stride[k])), l.Extent(before))
	last, first := expr.I(w.kernel[k]), expr.I(0)
	if !w.extent(k).Minus(before).AtMost(limit) {
		beyond := expr.Bin(expr.FloorDiv, expr.SubE(l.Extent(limit.Minus(extent.Of(1))), start), expr.I(d))
		last = expr.MinE(last, expr.AddE(beyond, expr.I(1)))
	}
	if before.Max() > 0 {
		first = expr.MaxE(first, expr.Bin(expr.FloorDiv, expr.SubE(expr.I(d-1), start), expr.I(d)))
	}
	return expr.SubE(last, first)
}

func globalPoolDef(name string, lower func(*Lowering, *Node, []Operand) Operand, label string) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: label, Layout: channelsLastResult,
		Infer: func(n *Node) (Type, error) {
			if _, err := floats(n); err != nil {
				return Type{}, fmt.Errorf("input %v is not of a floating point type", n.In[0].Type)
			}
			return inferImage(n)
		},
		Work: firstOperandWork, Lower: lower,
	}
}

// inferImage returns a type with one element per image.
func inferImage(n *Node) (Type, error) {
	x := n.In[0].Shape
	if x.Rank() < 3 {
		return Type{}, fmt.Errorf("input %v is not N, C and spatial axes", n.In[0].Type)
	}
	ones := slices.Repeat([]int64{1}, x.Rank()-2)
	return Type{n.In[0].DType, extent.Concat(x.Slice(0, 2), extent.Fixed(ones...))}, nil
}

func firstOperandWork(n *Node) float64 { return float64(array.Elements(n.In[0].Shape.Max())) }

// overImage combines a term of each element in each image.
func overImage(l *Lowering, n *Node, x Operand, name string, c expr.Combiner, term termFn) Operand {
	return l.Reduce(name, c, n.Out.Shape, ChannelsLast(x.Shape.Rank()), x.Shape.Slice(2, x.Shape.Rank()), func(i, r []expr.Expr) expr.Expr {
		return term(x.At(append(append([]expr.Expr{}, i[:2]...), r...)...))
	})
}

func lowerGlobalMaxPool(l *Lowering, n *Node, in []Operand) Operand {
	return narrow(l, n, overImage(l, n, l.Readable(in[0]), "globalpool", expr.Maximum, wide))
}

func lowerGlobalAveragePool(l *Lowering, n *Node, in []Operand) Operand {
	sum := overImage(l, n, l.Readable(in[0]), "globalpool", expr.Sum, wide)
	elements := in[0].Shape.Slice(2, in[0].Shape.Rank()).Elements()
	return l.Lazy(n.Out, sum.Layout, func(i []expr.Expr) expr.Expr {
		e := sum.At(i...)
		return expr.To(n.Out.DType, expr.MulE(e, count{l, elements}.inverse(e.DType())))
	})
}
