package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// ScaledConv is a convolution of floats by i8 weights with a scale per output channel, [output channels]; models do
// not contain it. Operands are those of Conv, with optional bias, followed by the scales. Sums are of floats times
// integers, and are scaled once.
const ScaledConv = "scaled_conv"

var scaledConvDefs = []Def{{
	Name: ScaledConv, Internal: true, Kind: Reduction, MinIn: 2, MaxIn: 4, Label: "conv",
	Infer: inferScaledConv, Lower: lowerScaledConv, Layout: channelsLastResult, Work: convWork, Detail: scaledConvDetail,
	Spatial: true, ChannelsOut: true,
	Traits: Traits{Product: scaledConvProduct, ZeroPads: true, Tiled: true},
}}

// scaledConvProduct describes a ScaledConv: nothing can be folded into integer weights.
func scaledConvProduct(n *Node) Product {
	p := convProduct(n)
	p.Mergeable, p.Scalable = false, false
	return p
}

func scaledConvDetail(n *Node) string { return convDetail(n) + " in 8 bits" }

func inferScaledConv(n *Node) (Type, error) {
	if !n.Has(3) {
		return Type{}, fmt.Errorf("scales are missing")
	}
	x, w, scale := n.In[0], n.In[1], n.In[3]
	if !x.DType.IsFloat() || w.DType != array.Int8 || !scale.DType.IsFloat() {
		return Type{}, fmt.Errorf("input %v, weights %v and scales %v: want floats, i8 and floats", x.Type, w.Type, scale.Type)
	}
	if w.Shape.Rank() == 0 || !scale.Shape.Equal(w.Shape.Slice(0, 1)) || n.Has(2) && (n.In[2].DType != x.DType || !n.In[2].Shape.Equal(w.Shape.Slice(0, 1))) {
		return Type{}, fmt.Errorf("scales %v or bias do not fit weights %v", scale.Type, w.Type)
	}
	return inferWindows(n, x.DType)
}

func lowerScaledConv(l *Lowering, n *Node, in []Operand) Operand {
	sum := lowerConvSum(l, n, in[0], in[1], expr.Zero(in[0].DType))
	scale := l.Readable(in[3])
	scaled := l.Lazy(sum.Type, sum.Layout, func(i []expr.Expr) expr.Expr {
		return expr.MulE(sum.At(i...), expr.To(sum.DType, scale.At(i[1])))
	})
	return addBias(l, n, scaled, in, 2)
}
