package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// sampling lists the elements along an axis that contribute to each element of the result, with their weights.
type sampling struct {
	resizedAxis
	kernel *kernel
	// taps is the number of elements for each of the result.
	taps extent.Extent
	// tables holds the elements and weights for fixed extents; for others, kernels compute them.
	tables tables[*array.Array]
	// places is the position of the only tap if it depends on the result's in a simple way.
	places places
}

// tables has, for each element of the result and each tap, the position of an element, which is always inside the
// axis, and its weight, unless there is only one tap. beyond flags elements of the result that tf_crop_and_resize
// takes from outside the operand.
type tables[T any] struct{ index, weight, beyond T }

// kernel is the interpolation of a Resize, by ONNX's definition and reference implementation.
type kernel struct {
	transformation string
	// round returns the nearest position, for mode nearest.
	round func(x, scale expr.Expr) expr.Expr
	// weight is the filter, of the given radius, for the other modes.
	weight func(distance expr.Expr) expr.Expr
	radius int64
	// antialias stretches the filter if the axis shrinks; exclude drops taps outside; crop fills them.
	antialias, exclude, crop bool
}

func newKernel(n *Node, mode string) (*kernel, error) {
	k := &kernel{
		transformation: n.Text("coordinate_transformation_mode", "half_pixel"),
		antialias:      n.Int("antialias", 0) != 0, exclude: n.Int("exclude_outside", 0) != 0,
	}
	if n.Op == Upsample || n.Opset < 11 {
		k.transformation = "asymmetric"
	}
	k.crop = k.transformation == "tf_crop_and_resize"
	if transformations[k.transformation] == nil {
		return nil, fmt.Errorf("coordinate_transformation_mode %q is unknown", k.transformation)
	}
	switch mode {
	case "nearest":
		rounding := n.Text("nearest_mode", "round_prefer_floor")
		if n.Op == Upsample {
			rounding = "floor"
		} else if n.Opset < 11 {
			rounding = "simple"
		}
		if k.round = roundings[rounding]; k.round == nil {
			return nil, fmt.Errorf("nearest_mode %q is unknown", rounding)
		}
	case "linear":
		k.radius, k.weight = 1, func(d expr.Expr) expr.Expr { return expr.MaxE(like(d, 0), expr.SubE(like(d, 1), d)) }
	default:
		a := n.Float("cubic_coeff_a", -0.75)
		k.radius, k.weight = 2, func(d expr.Expr) expr.Expr { return cubicWeight(d, a) }
	}
	return k, n.err
}

// cubicWeight is Keys' kernel ("Cubic convolution interpolation for digital image processing", 1981).
func cubicWeight(d expr.Expr, a float64) expr.Expr {
	// ((a+2)d - (a+3))d² + 1, then a(((d-5)d + 8)d - 4)
	near := expr.AddE(expr.MulE(expr.MulE(linear(d, a+2, -(a+3)), d), d), like(d, 1))
	inner := expr.AddE(expr.MulE(linear(d, 1, -5), d), like(d, 8))
	far := expr.MulE(expr.SubE(expr.MulE(inner, d), like(d, 4)), like(d, a))
	return expr.Sel(expr.Bin(expr.Le, d, like(d, 1)), near, expr.Sel(expr.Bin(expr.Lt, d, like(d, 2)), far, like(d, 0)))
}

// resizedPlace is a position o of the result, with the other numbers on which its place in the operand may depend, in
// a floating-point type. exact and exactScale are f64.
type resizedPlace struct {
	o, in, out, scale, start, end expr.Expr
	exact, exactScale             expr.Expr
	isSingle                      expr.Expr
}

func (p resizedPlace) number(v float64) expr.Expr { return like(p.o, v) }

// half maps the centres of elements.
func (p resizedPlace) half() expr.Expr {
	return expr.SubE(expr.DivE(expr.AddE(p.o, p.number(0.5)), p.scale), p.number(0.5))
}

// unlessSingle returns e, or one for a result of one element.
func (p resizedPlace) unlessSingle(one, e expr.Expr) expr.Expr { return expr.Sel(p.isSingle, one, e) }

// transformations maps positions by the names of the attribute coordinate_transformation_mode.
var transformations = map[string]func(p resizedPlace) expr.Expr{
	"half_pixel": resizedPlace.half,
	"half_pixel_symmetric": func(p resizedPlace) expr.Expr {
		rest := expr.SubE(p.number(1), expr.DivE(p.out, expr.MulE(p.in, p.scale)))
		return expr.AddE(expr.MulE(expr.DivE(p.in, p.number(2)), rest), p.half())
	},
	"tf_half_pixel_for_nn": func(p resizedPlace) expr.Expr { return expr.DivE(expr.AddE(p.o, p.number(0.5)), p.scale) },
	"asymmetric": func(p resizedPlace) expr.Expr { // the scale is not rounded
		return expr.To(p.o.DType(), expr.DivE(p.exact, p.exactScale))
	},
	"tf_crop_and_resize": func(p resizedPlace) expr.Expr {
		last := expr.SubE(p.in, p.number(1))
		middle := expr.MulE(expr.DivE(expr.AddE(p.start, p.end), p.number(2)), last)
		way := expr.MulE(expr.MulE(p.o, expr.SubE(p.end, p.start)), last)
		return p.unlessSingle(middle, expr.AddE(expr.MulE(p.start, last), expr.DivE(way, expr.SubE(p.out, p.number(1)))))
	},
	"pytorch_half_pixel": func(p resizedPlace) expr.Expr { return p.unlessSingle(p.number(0), p.half()) },
	"align_corners": func(p resizedPlace) expr.Expr { // not out-1: ONNX's reference does not round the extent
		last := expr.SubE(expr.MulE(p.scale, p.in), p.number(1))
		return p.unlessSingle(p.number(0), expr.DivE(expr.MulE(p.o, expr.SubE(p.in, p.number(1))), last))
	},
}

// steady reports whether positions depend on the scale alone, not on extents.
func (k *kernel) steady(a resizedAxis) bool {
	switch k.transformation {
	case "half_pixel", "tf_half_pixel_for_nn", "asymmetric":
		return a.scale.fixed()
	case "pytorch_half_pixel":
		return a.scale.fixed() && a.out.Min() > 1
	}
	return a.scale.fixed() && a.in == a.out && (!k.crop || a.start == 0 && a.end == 1)
}

// place returns the position on the operand's axis of element o of the result, as f64. That of mode nearest is
// computed in f32, in which ONNX Runtime decides ties.
func (k *kernel) place(l *Lowering, a resizedAxis, o expr.Expr) expr.Expr {
	const exact = array.Float64
	d := exact
	if k.weight == nil {
		d = array.Float32
	}
	scale := a.scale.as(l)
	isSingle := expr.Bin(expr.Eq, l.Extent(a.out), expr.I(1))
	if a.out.Min() > 1 {
		isSingle = &expr.Int{Value: 0, Type: array.Bool}
	}
	p := resizedPlace{
		o: expr.To(d, o), in: count{l, a.in}.as(d), out: count{l, a.out}.as(d), scale: expr.To(d, scale),
		start: expr.To(d, expr.F(exact, a.start)), end: expr.To(d, expr.F(exact, a.end)),
		exact: expr.To(exact, o), exactScale: scale, isSingle: isSingle,
	}
	return expr.To(exact, transformations[k.transformation](p))
}

var roundings = map[string]func(x, scale expr.Expr) expr.Expr{
	"round_prefer_floor": func(x, _ expr.Expr) expr.Expr { return expr.Un(expr.Ceil, expr.SubE(x, like(x, 0.5))) },
	"round_prefer_ceil":  func(x, _ expr.Expr) expr.Expr { return expr.Un(expr.Floor, expr.AddE(x, like(x, 0.5))) },
	"floor":              func(x, _ expr.Expr) expr.Expr { return expr.Un(expr.Floor, x) },
	"ceil":               func(x, _ expr.Expr) expr.Expr { return expr.Un(expr.Ceil, x) },
	"simple": func(x, scale expr.Expr) expr.Expr { // the behaviour of ONNX Runtime for opset 10, which does not specify it
		return expr.Sel(expr.Bin(expr.Lt, scale, like(scale, 1)), expr.Un(expr.Ceil, x), expr.Un(expr.Floor, x))
	},
}

// maxExamined limits the elements from which the places of steady transformations are inferred.
const maxExamined = 1 << 16

// sample computes the sampling of an axis; nil if it changes nothing.
func (k *kernel) sample(b *Budget, a resizedAxis) (*sampling, error) {
	if a.in.Is(0) || a.in.Min() < 1 && !a.scale.fixed() {
		return nil, fmt.Errorf("nothing to sample on axis %d%s", a.axis, raise(a.in))
	}
	s := &sampling{resizedAxis: a, kernel: k, taps: k.taps(a)}
	if s.taps.Max() > maxSamples/a.out.Max() {
		return nil, fmt.Errorf("axis %d shrinks too far: %v elements for each of %v", a.axis, s.taps, a.out)
	}
	open := a.in.IsOpen() || a.out.IsOpen()
	if open && !k.steady(a) {
		return s, nil
	}
	largest := *s
	largest.in, largest.out = extent.Of(a.in.Max()), extent.Of(a.out.Max())
	if open {
		largest.out = largest.out.Least(extent.Of(maxExamined))
	}
	if err := largest.tabulate(b); err != nil {
		return nil, err
	}
	if a.in == a.out && largest.identity() {
		return nil, nil //nolint:nilnil // no sampling
	}
	s.places = largest.placesOf()
	if !open {
		s.tables = largest.tables
	}
	return s, nil
}

// taps returns the number of elements that contribute to each of the result.
func (k *kernel) taps(a resizedAxis) extent.Extent {
	if k.weight == nil {
		return extent.Of(1)
	}
	radius := extent.Of(k.radius)
	switch {
	case !k.antialias:
	case a.scale.fixed():
		radius = extent.Of(int64(math.Ceil(float64(k.radius) / min(1, a.scale.factor))))
	default:
		radius = radius.Times(a.scale.over).CeilOver(a.scale.of).Most(radius)
	}
	return radius.Times(extent.Of(2))
}

// expressions returns the tables as expressions or stages; weights have the given type.
func (s *sampling) expressions(l *Lowering, d array.DType) (t tables[Operand]) {
	k, last := s.kernel, count{l, s.in}.plus(-1)
	inside := func(at expr.Expr) expr.Expr {
		return expr.To(array.Int64, expr.MaxE(like(at, 0), expr.MinE(at, last.as(at.DType()))))
	}
	outside := func(at expr.Expr) expr.Expr {
		return expr.Bin(expr.Or, expr.Bin(expr.Lt, at, like(at, 0)), expr.Bin(expr.Lt, last.as(at.DType()), at))
	}
	if k.crop {
		t.beyond = l.Lazy(Type{array.Bool, extent.ShapeOf(s.out)}, RowMajor(1), func(i []expr.Expr) expr.Expr {
			return outside(k.place(l, s.resizedAxis, i[0]))
		})
	}
	shape, layout := extent.ShapeOf(s.out, s.taps), RowMajor(2)
	if k.weight == nil {
		t.index = l.Lazy(Type{array.Int64, shape}, layout, func(i []expr.Expr) expr.Expr {
			return inside(k.round(k.place(l, s.resizedAxis, i[0]), s.scale.as(l)))
		})
		return t
	}
	tap := func(i []expr.Expr) (x, at expr.Expr) {
		x = k.place(l, s.resizedAxis, i[0])
		first := expr.SubE(expr.Un(expr.Floor, x), count{l, s.taps.Over(extent.Of(2)).Minus(extent.Of(1))}.as(x.DType()))
		return x, expr.AddE(first, expr.To(x.DType(), i[1]))
	}
	t.index = l.Map("index", shape, layout, func(i []expr.Expr) expr.Expr {
		_, at := tap(i)
		return inside(at)
	})
	weight := l.Map("weight", shape, layout, func(i []expr.Expr) expr.Expr {
		x, at := tap(i)
		distance := expr.SubE(at, x)
		if k.antialias {
			distance = expr.MulE(distance, expr.MinE(like(x, 1), s.scale.as(l)))
		}
		w := k.weight(expr.Un(expr.Abs, distance))
		if k.exclude {
			w = expr.Sel(outside(at), like(w, 0), w)
		}
		return w
	})
	sum := l.Reduce("sum", expr.Sum, extent.ShapeOf(s.out), RowMajor(1), extent.ShapeOf(s.taps), func(i, r []expr.Expr) expr.Expr {
		return weight.At(i[0], r[0])
	})
	t.weight = l.Map("share", shape, layout, func(i []expr.Expr) expr.Expr { // the weights add up to one
		w, total := weight.At(i...), sum.At(i[0])
		return expr.To(d, expr.Sel(expr.Bin(expr.Ne, total, like(total, 0)), expr.DivE(w, total), w))
	})
	return t
}

// tabulate computes the tables of a sampling with fixed extents.
func (s *sampling) tabulate(b *Budget) (err error) {
	l := NewLowering(b)
	evaluate := func(o Operand) *array.Array {
		if err != nil || o.DType == array.Invalid {
			return nil
		}
		var w *expr.Workload
		if w, err = expr.NewWorkload([]*expr.Tensor{l.Materialise("table", o).Tensor}); err != nil {
			return nil
		}
		var a *array.Array
		a, err = l.evaluate(w)
		return a
	}
	t := s.expressions(l, array.Float64)
	s.tables = tables[*array.Array]{evaluate(t.index), evaluate(t.weight), evaluate(t.beyond)}
	return err
}

// identity reports whether a tabulated sampling to the same extent changes nothing.
func (s *sampling) identity() bool {
	taps := s.taps.Max()
	for k := range s.tables.index.Len() {
		o := k / taps
		if s.tables.beyond != nil && s.tables.beyond.Int(o) != 0 {
			return false
		}
		w := 1.0
		if s.tables.weight != nil {
			w = s.tables.weight.Float(k)
		}
		if w != 0 && (s.tables.index.Int(k) != o || w != 1) {
			return false
		}
	}
	return true
}

// places is the position of an element's only tap in the operand, if it is the element's position divided by repeat,
// or else multiplied by step, plus first, as for integral scales.
type places struct {
	known               bool
	repeat, step, first int64
}

// placesOf returns the places of a tabulated sampling.
func (s *sampling) placesOf() places {
	if !s.taps.Is(1) {
		return places{}
	}
	index := s.tables.index
	p := places{first: index.Int(0)}
	if index.Len() > 1 {
		p.step = index.Int(1) - p.first
	}
	for p.repeat < index.Len() && index.Int(p.repeat) == 0 {
		p.repeat++
	}
	multiple, quotient := true, p.repeat > 0 && p.repeat < index.Len()
	for k := range index.Len() {
		multiple = multiple && index.Int(k) == p.first+k*p.step
		quotient = quotient && index.Int(k) == k/p.repeat
	}
	if multiple {
		p.repeat = 0
	}
	p.known = multiple || quotient
	return p
}

// position returns the position of the only tap of element o.
func (s *sampling) position(l *Lowering, o expr.Expr) expr.Expr {
	p, end := s.places, s.out.Minus(extent.Of(1))
	at := expr.Bin(expr.FloorDiv, o, expr.I(max(1, p.repeat)))
	end = end.Over(extent.Of(max(1, p.repeat)))
	if p.repeat == 0 {
		at = expr.AddE(expr.MulE(o, expr.I(p.step)), expr.I(p.first))
		end = end.Times(extent.Of(p.step)).Plus(extent.Of(p.first))
	}
	if last := s.in.Minus(extent.Of(1)); !end.AtMost(last) {
		return expr.MinE(at, l.Extent(last))
	}
	return at
}
