package operators

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// geometry describes a convolution with square kernels.
type geometry struct {
	spatial                                []int64
	in, out, kernel, stride, pad, dilation int64
	groups                                 int64
}

// geometryOf parses rank spatial extents, input and output channels, kernel, stride and padding, and optionally
// dilation and groups.
func geometryOf(rank int, shape []int64) geometry {
	g := geometry{spatial: shape[:rank], dilation: 1, groups: 1}
	fields := []*int64{&g.in, &g.out, &g.kernel, &g.stride, &g.pad, &g.dilation, &g.groups}
	for k, v := range shape[rank:] {
		*fields[k] = v
	}
	return g
}

func (g geometry) positions() []int64 {
	var list []int64
	for _, e := range g.spatial {
		list = append(list, (e+2*g.pad-g.dilation*(g.kernel-1)-1)/g.stride+1)
	}
	return list
}

func (g geometry) kernels() []int64 { return slices.Repeat([]int64{g.kernel}, len(g.spatial)) }

// padded returns x (batch, spatial axes, others) with g.pad zeros around the spatial axes.
func (g geometry) padded(x *expr.Tensor) *expr.Tensor {
	if g.pad == 0 {
		return x
	}
	shape := slices.Clone(x.Shape)
	for k := range g.spatial {
		shape[1+k] += 2 * g.pad
	}
	return expr.Compute("pad", shape, func(i []expr.Expr) expr.Expr {
		at := slices.Clone(i)
		var inside expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
		for k, e := range g.spatial {
			at[1+k] = expr.SubE(i[1+k], expr.I(g.pad))
			inside = expr.Bin(expr.And, inside, expr.InRange(at[1+k], 0, e))
		}
		return expr.Sel(inside, x.At(at...), expr.Zero(x.DType))
	})
}

// at returns the position of the padded input that output i reads with kernel element r.
func (g geometry) at(i, r expr.Expr) expr.Expr {
	return expr.AddE(expr.MulE(i, expr.I(g.stride)), expr.MulE(r, expr.I(g.dilation)))
}

// convolve returns the convolution of channels-last images. Weights have the axes kernel, input channels per group,
// and output channels.
func (g geometry) convolve(batch int64, of element) (*expr.Tensor, float64) {
	rank := len(g.spatial)
	x := g.padded(expr.NewInput("x", of.operand, slices.Concat([]int64{batch}, g.spatial, []int64{g.in})...))
	w := expr.NewConstant("w", of.weights, slices.Concat(g.kernels(), []int64{g.in / g.groups, g.out})...)
	shape := slices.Concat([]int64{batch}, g.positions(), []int64{g.out})
	extents := append(g.kernels(), g.in/g.groups)
	out := expr.ReduceOver("conv", expr.Sum, shape, extents, func(i, r []expr.Expr) expr.Expr {
		at := []expr.Expr{i[0]}
		for k := range rank {
			at = append(at, g.at(i[1+k], r[k]))
		}
		group := expr.Bin(expr.FloorDiv, i[1+rank], expr.I(g.out/g.groups))
		if g.groups == 1 {
			group = expr.I(0)
		}
		at = append(at, expr.AddE(expr.MulE(group, expr.I(g.in/g.groups)), r[rank]))
		return of.product(x.At(at...), w.At(append(slices.Clone(r), i[1+rank])...))
	})
	return out, 2 * float64(array.Elements(shape)) * float64(array.Elements(extents))
}

func conv(rank int) func(batch int64, shape []int64) (*expr.Tensor, float64) {
	return func(batch int64, shape []int64) (*expr.Tensor, float64) {
		return geometryOf(rank, shape).convolve(batch, floats)
	}
}

// convLayer is a convolution with bias, batch normalisation and ReLU.
func convLayer(batch int64, shape []int64) (*expr.Tensor, float64) {
	g := geometryOf(2, shape)
	c, flop := g.convolve(batch, floats)
	bias, scale, offset := expr.NewConstant("b", float, g.out), expr.NewConstant("s", float, g.out), expr.NewConstant("o", float, g.out)
	return expr.Compute("relu", c.Shape, func(i []expr.Expr) expr.Expr {
		normal := expr.AddE(expr.MulE(expr.AddE(c.At(i...), bias.At(i[3])), scale.At(i[3])), offset.At(i[3]))
		return expr.MaxE(normal, expr.Zero(float))
	}), flop
}

// depthwise is a depthwise convolution. Shapes are spatial extents, channels, kernel, stride and padding.
func depthwise(batch int64, shape []int64) (*expr.Tensor, float64) {
	return depthwiseOf(batch, shape, floats)
}

func depthwiseOf(batch int64, shape []int64, of element) (*expr.Tensor, float64) {
	channels := shape[2]
	g := geometryOf(2, slices.Insert(slices.Clone(shape), 3, channels))
	x := g.padded(expr.NewInput("x", of.operand, batch, shape[0], shape[1], channels))
	w := expr.NewConstant("w", of.weights, g.kernel, g.kernel, channels)
	out := slices.Concat([]int64{batch}, g.positions(), []int64{channels})
	t := expr.ReduceOver("conv", expr.Sum, out, g.kernels(), func(i, r []expr.Expr) expr.Expr {
		return of.product(x.At(i[0], g.at(i[1], r[0]), g.at(i[2], r[1]), i[3]), w.At(r[0], r[1], i[3]))
	})
	return t, 2 * float64(array.Elements(out)) * float64(g.kernel*g.kernel)
}

// transposed is a transposed convolution. Outputs that differ by a multiple of the stride use the same kernel
// elements. Each spatial axis of the result is therefore two axes, position and phase, that are contiguous in memory.
// Only products with image elements count as work, not those with the zeros between them.
func transposed(batch int64, shape []int64) (*expr.Tensor, float64) {
	g := geometryOf(2, shape)
	s, taps := g.stride, g.kernel/g.stride
	// reach is the number of zeros before the image: output p*s+phase reads positions p - reach + phase/s ..., all
	// within the padded image.
	border := geometry{spatial: g.spatial, pad: taps - 1}
	x := border.padded(expr.NewInput("x", float, batch, shape[0], shape[1], g.in))
	w := expr.NewConstant("w", float, g.kernel, g.kernel, g.in, g.out)
	out := []int64{batch, shape[0], s, shape[1], s, g.out}
	t := expr.ReduceOver("conv", expr.Sum, out, []int64{taps, taps, g.in}, func(i, r []expr.Expr) expr.Expr {
		// Output o = p*s + phase takes kernel element e = (o+pad)%s + s*tap of image position (o+pad)/s - tap.
		locate := func(p, phase, tap expr.Expr) (position, element expr.Expr) {
			shifted := expr.AddE(phase, expr.I(g.pad))
			position = expr.AddE(expr.SubE(expr.AddE(p, expr.Bin(expr.FloorDiv, shifted, expr.I(s))), tap), expr.I(border.pad))
			return position, expr.AddE(expr.Bin(expr.FloorMod, shifted, expr.I(s)), expr.MulE(tap, expr.I(s)))
		}
		row, rowElement := locate(i[1], i[2], r[0])
		col, colElement := locate(i[3], i[4], r[1])
		return expr.MulE(x.At(i[0], row, col, r[2]), w.At(rowElement, colElement, r[2], i[5]))
	})
	return t, 2 * float64(array.Elements(out)) * float64(taps*taps*g.in)
}

// capsule is a convolution whose elements are 4 x 4 matrices.
func capsule(batch int64, shape []int64) (*expr.Tensor, float64) {
	const size = 4
	g := geometryOf(2, shape)
	x := g.padded(expr.NewInput("x", float, batch, shape[0], shape[1], size, size, g.in))
	w := expr.NewConstant("w", float, g.kernel, g.kernel, size, size, g.in, g.out)
	out := slices.Concat([]int64{batch}, g.positions(), []int64{size, size, g.out})
	extents := []int64{g.kernel, g.kernel, size, g.in}
	t := expr.ReduceOver("capsule", expr.Sum, out, extents, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], g.at(i[1], r[0]), g.at(i[2], r[1]), i[3], r[2], r[3]), w.At(r[0], r[1], r[2], i[4], r[3], i[5]))
	})
	return t, 2 * float64(array.Elements(out)) * float64(array.Elements(extents))
}
