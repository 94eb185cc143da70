package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var deformConvDefs = []Def{{
	Name: "DeformConv", Kind: Reduction, MinIn: 3, MaxIn: 5, Label: "deformconv",
	Infer: inferDeformConv, Lower: lowerDeformConv, Layout: channelsLastResult, Work: convWork, Detail: convDetail,
}}

func inferDeformConv(n *Node) (Type, error) {
	m := *n
	m.In = []Value{n.In[0], n.In[1]}
	if n.Has(3) {
		m.In = append(m.In, n.In[3])
	}
	t := Get(inferConv(&m))
	n.err = m.err
	x, offset, groups := n.In[0].Shape, n.In[2], n.Int("offset_group", 1)
	if x.Rank() != 4 {
		return Type{}, fmt.Errorf("input %v with other than two spatial axes is not supported", x)
	}
	if x.IsOpen() {
		if err := sampled(n.In[0].Type); err != nil {
			return Type{}, err
		}
	}
	kernel := array.Elements(n.In[1].Shape.Fixed()[2:])
	if groups < 1 || !x.At(1).Mod(extent.Of(groups)).Is(0) || offset.DType != n.In[0].DType || !offset.Shape.Equal(t.Shape.With(1, extent.Of(groups*kernel*2))) {
		return Type{}, fmt.Errorf("offsets %v do not fit input %v, %d kernel elements and %d offset groups", offset.Type, x, kernel, groups)
	}
	if n.Has(4) && !n.In[4].Shape.Equal(t.Shape.With(1, extent.Of(groups*kernel))) {
		return Type{}, fmt.Errorf("mask %v does not fit offsets %v", n.In[4].Type, offset.Type)
	}
	return t, nil
}

// lowerDeformConv samples the operand at the offsets, for each kernel element and output, then sums the products
// with the weights as a convolution does.
func lowerDeformConv(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(convWindow(n))
	x, offset := l.Readable(in[0]), l.Readable(in[2])
	groups := n.Int("offset_group", 1)
	kernel := win.kernel[0] * win.kernel[1]
	// Axes of the tables: N, offset group, kernel element, and the output's.
	places := extent.Concat(x.Shape.Slice(0, 1), extent.Fixed(groups, kernel), n.Out.Shape.Slice(2, 4))
	var tables [2]tapTable
	for k := range tables {
		g := gridAxis{size: count{l, x.Shape.At(2 + k)}, padding: "zeros"}
		tables[k] = g.table(l, places, 2, linearTap, func(i []expr.Expr) expr.Expr {
			r := expr.Bin(expr.FloorMod, i[2], expr.I(win.kernel[1]))
			if k == 0 {
				r = expr.Bin(expr.FloorDiv, i[2], expr.I(win.kernel[1]))
			}
			channel := expr.AddE(expr.MulE(expr.AddE(expr.MulE(i[1], expr.I(kernel)), i[2]), expr.I(2)), expr.I(int64(k)))
			shift := wide(offset.At(i[0], channel, i[3], i[4]))
			at := expr.SubE(win.at(k, i[3+k], r), l.Extent(win.padBegin[k]))
			return expr.AddE(expr.To(shift.DType(), at), shift)
		})
	}
	samples := l.deformedSamples(n, x, in, tables, kernel)
	w := l.Arrange(in[1], []int{2, 3, 1, 0})
	w = l.matrix(w)
	over := extent.Fixed(win.kernel[0], win.kernel[1], n.In[1].Shape.Fixed()[1])
	acc := l.Reduce("deformconv", expr.Sum, n.Out.Shape, ChannelsLast(4), over, func(i, r []expr.Expr) expr.Expr {
		element := expr.AddE(expr.MulE(r[0], expr.I(win.kernel[1])), r[1])
		sample := samples.At(i[0], groupChannel(n, i[1], r[2]), element, i[2], i[3])
		return expr.MulE(sample, wide(w.At(i[1], r[2], r[0], r[1])))
	})
	return addBias(l, n, acc, in, 3)
}

// deformedSamples has the axes N, channels, kernel element and the output's; channels are last in memory.
func (l *Lowering) deformedSamples(n *Node, x Operand, in []Operand, tables [2]tapTable, kernel int64) Operand {
	perGroup := l.Extent(x.Shape.At(1).Over(extent.Of(n.Int("offset_group", 1))))
	shape := extent.Concat(x.Shape.Slice(0, 2), extent.Fixed(kernel), n.Out.Shape.Slice(2, 4))
	sampled := l.Reduce("samples", expr.Sum, shape, ChannelsLast(5), extent.Fixed(2, 2), func(i, r []expr.Expr) expr.Expr {
		place := slices.Clone(i)
		place[1] = expr.Bin(expr.FloorDiv, i[1], perGroup)
		y, wy := tables[0].at(place, r[0])
		z, wz := tables[1].at(place, r[1])
		return expr.MulE(wide(x.At(i[0], i[1], y, z)), expr.MulE(wy, wz))
	})
	if !n.Has(4) {
		return sampled
	}
	mask := l.Readable(in[4])
	return l.Map("masked", shape, ChannelsLast(5), func(i []expr.Expr) expr.Expr {
		group := expr.Bin(expr.FloorDiv, i[1], perGroup)
		channel := expr.AddE(expr.MulE(group, expr.I(kernel)), i[2])
		return expr.MulE(sampled.At(i...), wide(mask.At(i[0], channel, i[3], i[4])))
	})
}
