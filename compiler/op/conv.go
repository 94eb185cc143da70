package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

const trueType = array.Bool

var convDefs = []Def{{
	Name: Conv, Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "conv",
	Infer: inferConv, Lower: lowerConv, Layout: channelsLastResult, Work: convWork, Detail: convDetail,
	Spatial: true, ChannelsOut: true,
	Traits: Traits{Product: convProduct, ZeroPads: true, Tiled: true},
}}

func channelsLastResult(n *Node, _ [][]int) []int { return ChannelsLast(n.Out.Shape.Rank()) }

func convWindow(n *Node) (window, error) {
	x := n.In[0].Shape
	return newWindow(n, x.Slice(2, x.Rank()), n.Ints("kernel_shape", n.In[1].Shape.Fixed()[2:]))
}

func inferConv(n *Node) (Type, error) {
	d := Get(floats(n))
	if w := n.In[1].Shape; n.Has(2) && (w.Rank() == 0 || !n.In[2].Shape.Equal(w.Slice(0, 1))) {
		return Type{}, fmt.Errorf("bias %v does not fit weights %v", n.In[2].Shape, w)
	}
	return inferWindows(n, d)
}

// inferWindows returns the type of a convolution that sums in type d.
func inferWindows(n *Node, d array.DType) (Type, error) {
	x, w := n.In[0].Shape, n.In[1].Shape.Fixed()
	if x.Rank() < 3 || len(w) != x.Rank() {
		return Type{}, fmt.Errorf("input %v and weights %v do not fit", x, w)
	}
	channels := Get(channelsOf(x))
	groups := n.Int("group", 1)
	if groups < 1 || channels%groups != 0 || w[0]%groups != 0 || w[1] != channels/groups {
		return Type{}, fmt.Errorf("input %v, weights %v and %d groups do not fit", x, w, groups)
	}
	win := Get(convWindow(n))
	if !slices.Equal(win.kernel, w[2:]) {
		return Type{}, fmt.Errorf("kernel_shape %v does not fit weights %v", win.kernel, w)
	}
	return Type{d, win.windows(x.At(0), extent.Of(w[0]))}, nil
}

// channelsOf returns the channels of a convolution's input, which those of the weights determine.
func channelsOf(x extent.Shape) (int64, error) {
	n, ok := x.At(1).Const()
	if !ok {
		return 0, fmt.Errorf("the channels %v of input %v are open, which weights do not allow: fix them by --shape", x.At(1), x)
	}
	return n, nil
}

// weightLayout returns the order KH, KW, IC/g, OC; without the input channels for a depthwise convolution.
func weightLayout(rank int, depthwise bool) []int {
	l := RowMajor(rank)[2:]
	if depthwise {
		return append(l, 0)
	}
	return append(l, 1, 0)
}

func isDepthwise(n *Node) bool {
	g := n.Int("group", 1)
	return g > 1 && n.In[0].Shape.At(1).Is(g) && n.In[1].Shape.At(0).Is(g)
}

// lowerConv computes out[n,oc,o] = sum over kernel positions r and input channels c of x[n,c,o*stride+r*dilation] *
// w[oc,c,r].
func lowerConv(l *Lowering, n *Node, in []Operand) Operand {
	acc := lowerConvSum(l, n, in[0], in[1], expr.Zero(in[0].DType))
	return addBias(l, n, acc, in, 2)
}

// lowerConvSum returns a convolution without bias of an input that is padded with fill.
func lowerConvSum(l *Lowering, n *Node, x, w Operand, fill expr.Expr) Operand {
	win := Get(convWindow(n))
	rank := x.Shape.Rank()
	x = win.pad(l, x, fill)
	depthwise := isDepthwise(n)
	w = l.Arrange(w, weightLayout(rank, depthwise))
	extents := append([]int64{}, win.kernel...)
	if !depthwise {
		extents = append(extents, n.In[1].Shape.Fixed()[1])
	}
	return l.Reduce("conv", expr.Sum, n.Out.Shape, ChannelsLast(rank), extent.Fixed(extents...), func(i, r []expr.Expr) expr.Expr {
		xi, wi := make([]expr.Expr, rank), make([]expr.Expr, rank)
		xi[0], wi[0] = i[0], i[1]
		xi[1], wi[1] = i[1], expr.I(0)
		if !depthwise {
			xi[1], wi[1] = groupChannel(n, i[1], r[rank-2]), r[rank-2]
		}
		for k := range win.in {
			xi[2+k], wi[2+k] = win.at(k, i[2+k], r[k]), r[k]
		}
		return expr.MulE(factor(n, x.At(xi...)), factor(n, w.At(wi...)))
	})
}

// groupChannel returns the input channel for channel c of the group of output channel oc.
func groupChannel(n *Node, oc, c expr.Expr) expr.Expr {
	groups, w := n.Int("group", 1), n.In[1].Shape.Fixed()
	if groups == 1 {
		return c
	}
	group := expr.Bin(expr.FloorDiv, oc, expr.I(w[0]/groups))
	return expr.AddE(expr.MulE(group, expr.I(w[1])), c)
}

// addBias adds operand k, which has one element per channel (axis 1), and rounds to the result's type.
func addBias(l *Lowering, n *Node, acc Operand, in []Operand, k int) Operand {
	if !n.Has(k) && acc.DType == n.Out.DType {
		return acc
	}
	var bias *Operand
	if n.Has(k) {
		bias = new(l.Readable(in[k]))
	}
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		if bias != nil {
			e = expr.AddE(e, wide(bias.At(i[1])))
		}
		return expr.To(n.Out.DType, e)
	})
}

func convWork(n *Node) float64 {
	return 2 * float64(array.Elements(n.Out.Shape.Max())) * float64(array.Elements(n.In[1].Shape.Fixed()[1:]))
}

func convDetail(n *Node) string {
	text := windowDetail(convWindow(n))
	switch g := n.Int("group", 1); {
	case isDepthwise(n):
		text += " depthwise"
	case g > 1:
		text += fmt.Sprintf(" g%d", g)
	}
	return text
}
