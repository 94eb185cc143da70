package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var roiDefs = []Def{
	{
		Name: "RoiAlign", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "roialign", Infer: inferRoiAlign, Lower: lowerRoiAlign,
		Layout: channelsLastResult, Work: func(n *Node) float64 {
			return 20 * float64(array.Elements(n.Out.Shape.Max())) * math.Pow(float64(n.Int("sampling_ratio", 0)), 2)
		},
	},
	{
		Name: "MaxRoiPool", Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "roipool", Infer: inferMaxRoiPool, Lower: lowerMaxRoiPool,
		Layout: channelsLastResult, Work: func(n *Node) float64 {
			return float64(array.Elements(n.Out.Shape.Max())) * float64(array.Elements(n.In[0].Shape.Max()[2:]))
		},
	},
}

func inferRoiAlign(n *Node) (Type, error) {
	x, rois, batch := n.In[0], n.In[1], n.In[2]
	if x.Shape.Rank() != 4 || !x.DType.IsFloat() || rois.DType != x.DType || batch.DType != array.Int64 ||
		rois.Shape.Rank() != 2 || !rois.Shape.At(1).Is(4) || !batch.Shape.Equal(rois.Shape.Slice(0, 1)) {
		return Type{}, fmt.Errorf("input %v, regions %v and batch indices %v do not fit", x.Type, rois.Type, batch.Type)
	}
	if err := sampled(x.Type, x.Shape.At(0)); err != nil {
		return Type{}, err
	}
	ratio, height, width := n.Int("sampling_ratio", 0), n.Int("output_height", 1), n.Int("output_width", 1)
	n.Float("spatial_scale", 1)
	if n.err == nil && ratio == 0 {
		return Type{}, fmt.Errorf("sampling_ratio 0 is not supported, for it lets the number of samples depend on data: export the model with a positive one")
	}
	if min(ratio, height, width) < 1 || max(ratio, height, width) > 1<<16 {
		return Type{}, fmt.Errorf("sampling_ratio %d or output %d by %d is out of range", ratio, height, width)
	}
	if mode := n.Text("mode", "avg"); mode != "avg" && mode != "max" {
		return Type{}, fmt.Errorf("mode %q is unknown", mode)
	}
	if mode := roiTransformation(n); mode != "half_pixel" && mode != "output_half_pixel" {
		return Type{}, fmt.Errorf("coordinate_transformation_mode %q is unknown", mode)
	}
	return Type{x.DType, extent.ShapeOf(rois.Shape.At(0), x.Shape.At(1), extent.Of(height), extent.Of(width))}, nil
}

// roiTransformation returns the coordinate transformation: since opset 16, half a pixel is subtracted in the input,
// too.
func roiTransformation(n *Node) string {
	if n.Opset < 16 {
		return "output_half_pixel"
	}
	return n.Text("coordinate_transformation_mode", "half_pixel")
}

// lowerRoiAlign combines ratio x ratio samples of each bin. Like ONNX's reference, mode max takes the largest of
// the weighted corners of all samples, not of the samples.
func lowerRoiAlign(l *Lowering, n *Node, in []Operand) Operand {
	x, rois, batch := l.Readable(in[0]), l.Readable(in[1]), l.Readable(in[2])
	ratio, isMax := n.Int("sampling_ratio", 0), n.Text("mode", "avg") == "max"
	sizes := n.Out.Shape.Slice(2, 4).Fixed()
	// sample returns a coordinate on spatial axis k (0: height), given the bin and the sample in it.
	sample := func(k int, roi, bin, s expr.Expr) expr.Expr {
		at := func(column int64) expr.Expr {
			v := wide(rois.At(roi, expr.I(column)))
			v = expr.MulE(v, like(v, n.Float("spatial_scale", 1)))
			if roiTransformation(n) == "half_pixel" {
				v = expr.SubE(v, like(v, 0.5))
			}
			return v
		}
		start, end := at(int64(1-k)), at(int64(3-k))
		span := expr.SubE(end, start)
		if roiTransformation(n) != "half_pixel" {
			span = expr.MaxE(span, like(span, 1))
		}
		position := expr.To(span.DType(), expr.AddE(expr.MulE(bin, expr.I(ratio)), s))
		return expr.AddE(start, expr.MulE(linear(position, 1, 0.5), expr.DivE(span, like(span, float64(ratio*sizes[k])))))
	}
	var tables [2]tapTable
	for k, e := range x.Shape.Extents()[2:] {
		places := extent.Concat(n.Out.Shape.Slice(0, 1), extent.Fixed(sizes[k], ratio))
		tables[k] = cornerTable(l, places, count{l, e}, func(i []expr.Expr) expr.Expr { return sample(k, i[0], i[1], i[2]) })
	}
	c := expr.Sum
	if isMax {
		c = expr.Maximum
	}
	extents := []int64{ratio, ratio, 2, 2}
	acc := l.Reduce("roialign", c, n.Out.Shape, ChannelsLast(4), extent.Fixed(extents...), func(i, r []expr.Expr) expr.Expr {
		y, wy := tables[0].at([]expr.Expr{i[0], i[2], r[0]}, r[2])
		z, wz := tables[1].at([]expr.Expr{i[0], i[3], r[1]}, r[3])
		return expr.MulE(wide(x.At(l.position(batch.At(i[0]), x.Shape.At(0)), i[1], y, z)), expr.MulE(wy, wz))
	})
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		if !isMax {
			e = expr.MulE(e, like(e, 1/float64(ratio*ratio)))
		}
		return expr.To(n.Out.DType, e)
	})
}

// cornerTable tabulates the two elements beside a place on an axis of the given extent, whose first and last
// elements extend one element further.
func cornerTable(l *Lowering, shape extent.Shape, size count, place func(i []expr.Expr) expr.Expr) tapTable {
	last := shape.Rank()
	shape = extent.Concat(shape, extent.Fixed(2))
	clamped := func(i []expr.Expr) (at, low expr.Expr) {
		at = place(i[:last])
		at = expr.MinE(expr.MaxE(at, like(at, 0)), size.plus(-1).as(at.DType()))
		return at, expr.Un(expr.Floor, at)
	}
	index := l.Map("index", shape, RowMajor(last+1), func(i []expr.Expr) expr.Expr {
		_, low := clamped(i)
		return size.nearestIndex(expr.AddE(low, expr.To(low.DType(), i[last])))
	})
	weight := l.Map("weight", shape, RowMajor(last+1), func(i []expr.Expr) expr.Expr {
		p := place(i[:last])
		at, low := clamped(i)
		fraction := expr.SubE(at, low)
		w := expr.Sel(expr.Bin(expr.Eq, i[last], expr.I(0)), expr.SubE(like(at, 1), fraction), fraction)
		inside := expr.Bin(expr.And, expr.Bin(expr.Le, like(p, -1), p), expr.Bin(expr.Le, p, size.as(p.DType())))
		return expr.Sel(inside, w, like(w, 0))
	})
	return tapTable{index, weight}
}

func inferMaxRoiPool(n *Node) (Type, error) {
	x, rois := n.In[0], n.In[1]
	pooled := n.Ints("pooled_shape", nil)
	n.Float("spatial_scale", 1)
	if x.Shape.Rank() != 4 || !x.DType.IsFloat() || rois.DType != x.DType || rois.Shape.Rank() != 2 || !rois.Shape.At(1).Is(5) {
		return Type{}, fmt.Errorf("input %v and regions %v do not fit", x.Type, rois.Type)
	}
	if err := sampled(x.Type, x.Shape.At(0)); err != nil {
		return Type{}, err
	}
	if len(pooled) != 2 || slices.Min(pooled) < 1 || slices.Max(pooled) > 1<<16 {
		return Type{}, fmt.Errorf("pooled_shape %v is out of range", pooled)
	}
	return Type{x.DType, extent.Concat(extent.ShapeOf(rois.Shape.At(0), x.Shape.At(1)), extent.Fixed(pooled...))}, nil
}

// lowerMaxRoiPool scans every element for each bin, since its extent depends on data, along one axis after the other.
func lowerMaxRoiPool(l *Lowering, n *Node, in []Operand) Operand {
	x, rois := l.Readable(in[0]), l.Readable(in[1])
	scale := n.Float("spatial_scale", 1)
	// within returns the condition that element e of spatial axis k is in a bin; bins divide the rounded region,
	// and are at least one wide.
	within := func(k int, roi, bin, e expr.Expr) expr.Expr {
		at := func(column int64) expr.Expr {
			v := wide(rois.At(roi, expr.I(column)))
			return expr.Un(expr.Floor, linear(v, scale, 0.5))
		}
		start, end := at(int64(2-k)), at(int64(4-k))
		span := expr.MaxE(linear(expr.SubE(end, start), 1, 1), like(start, 1))
		width := expr.DivE(span, like(span, float64(n.Out.Shape.Max()[2+k])))
		b := expr.To(span.DType(), bin)
		first := expr.AddE(expr.Un(expr.Floor, expr.MulE(b, width)), start)
		last := expr.AddE(expr.Un(expr.Ceil, expr.MulE(linear(b, 1, 1), width)), start)
		p := expr.To(span.DType(), e)
		return expr.Bin(expr.And, expr.Bin(expr.Le, first, p), expr.Bin(expr.Lt, p, last))
	}
	lowest := expr.Lowest(wideType(x.DType))
	rows := l.Reduce("rows", expr.Maximum, n.Out.Shape.With(3, x.Shape.At(3)), ChannelsLast(4), x.Shape.Slice(2, 3),
		func(i, r []expr.Expr) expr.Expr {
			image := l.position(expr.To(array.Int64, rois.At(i[0], expr.I(0))), x.Shape.At(0))
			return expr.Sel(within(0, i[0], i[2], r[0]), wide(x.At(image, i[1], r[0], i[3])), lowest)
		})
	acc := l.Reduce("roipool", expr.Maximum, n.Out.Shape, ChannelsLast(4), x.Shape.Slice(3, 4), func(i, r []expr.Expr) expr.Expr {
		return expr.Sel(within(1, i[0], i[3], r[0]), rows.At(i[0], i[1], i[2], r[0]), lowest)
	})
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		empty := expr.Bin(expr.And, expr.Un(expr.IsInf, e), expr.Un(expr.Not, positive(e)))
		return expr.To(n.Out.DType, expr.Sel(empty, like(e, 0), e))
	})
}
