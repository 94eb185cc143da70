package op

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// sampler is a sampling in a kernel; weights have the computation type.
type sampler struct {
	*sampling
	l *Lowering
	tables[Operand]
}

func (l *Lowering) sampler(s *sampling, d array.DType) sampler {
	r := sampler{sampling: s, l: l}
	if s.tables.index == nil {
		r.tables = s.expressions(l, d)
		return r
	}
	if !s.places.known {
		r.index = l.Made(s.tables.index)
	}
	if t := s.tables.weight; t != nil {
		w := l.budget.array(d, t.Shape...)
		for k := range t.Len() {
			w.SetFloat(k, t.Float(k))
		}
		r.weight = l.Made(w)
	}
	if s.tables.beyond != nil {
		r.beyond = l.Made(s.tables.beyond)
	}
	return r
}

// position returns the position of tap t of element o.
func (s sampler) position(o, t expr.Expr) expr.Expr {
	if s.places.known {
		return s.sampling.position(s.l, o)
	}
	return s.index.At(o, t)
}

// fill returns the fill value for positions outside the operand with tf_crop_and_resize.
func (r *resize) fill(n *Node, samplers []sampler, i []expr.Expr, e expr.Expr) expr.Expr {
	for _, s := range samplers {
		if s.kernel.crop {
			e = expr.Sel(s.beyond.At(i[s.axis]), expr.F(n.Out.DType, r.outside), e)
		}
	}
	return e
}

func (r *resize) samplers(l *Lowering, d array.DType) []sampler {
	list := make([]sampler, len(r.axes))
	for k, s := range r.axes {
		list[k] = l.sampler(s, d)
	}
	return list
}

// lowerNearest reads each element from one place.
func lowerNearest(l *Lowering, n *Node, in []Operand) Operand {
	r, x := n.resize, l.Readable(in[0])
	samplers := r.samplers(l, array.Float32)
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		index := append([]expr.Expr{}, i...)
		for _, s := range samplers {
			index[s.axis] = s.position(i[s.axis], expr.I(0))
		}
		return r.fill(n, samplers, i, x.At(index...))
	})
}

// maxCorners limits the elements that are weighted together: those of linear interpolation along three axes.
const maxCorners = 8

func lowerResize(l *Lowering, n *Node, in []Operand) Operand {
	r := n.resize
	if r.mode == "nearest" {
		return lowerNearest(l, n, in)
	}
	x := l.Readable(in[0])
	d := wideType(n.Out.DType)
	if !d.IsFloat() {
		d = array.Float64
	}
	samplers := r.samplers(l, d)
	corners := int64(1)
	for _, s := range r.axes {
		if corners *= min(s.taps.Max(), maxCorners+1); s.taps.IsOpen() {
			corners = maxCorners + 1
		}
	}
	at := func(i []expr.Expr) expr.Expr { return expr.To(d, wide(x.At(i...))) }
	if corners <= maxCorners {
		at = weighCorners(samplers, at)
	} else {
		at = r.weighAxes(l, samplers, x, at)
	}
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		e := at(i)
		if !n.Out.DType.IsFloat() { // the cast truncates, and weights such as 1/3 leave a whole result just below
			e = expr.Sel(expr.Bin(expr.Lt, e, like(e, 0)), expr.SubE(e, like(e, 0x1p-30)), expr.AddE(e, like(e, 0x1p-30)))
		}
		return r.fill(n, samplers, i, expr.To(n.Out.DType, e))
	})
}

// weighCorners interpolates along all axes at once, without intermediate storage.
func weighCorners(samplers []sampler, at func(i []expr.Expr) expr.Expr) func(i []expr.Expr) expr.Expr {
	for _, s := range samplers {
		inner := at
		at = func(i []expr.Expr) expr.Expr {
			var sum expr.Expr
			for t := range s.taps.Max() {
				j := append([]expr.Expr{}, i...)
				j[s.axis] = s.position(i[s.axis], expr.I(t))
				e := expr.MulE(inner(j), s.weight.At(i[s.axis], expr.I(t)))
				if sum == nil {
					sum = e
				} else {
					sum = expr.AddE(sum, e)
				}
			}
			return sum
		}
	}
	return at
}

// weighAxes interpolates along one axis after the other, those that shrink most first.
func (r *resize) weighAxes(l *Lowering, samplers []sampler, x Operand, at func(i []expr.Expr) expr.Expr) func(i []expr.Expr) expr.Expr {
	samplers = slices.Clone(samplers)
	slices.SortStableFunc(samplers, func(a, b sampler) int {
		return cmp.Compare(float64(a.out.Max())/float64(a.in.Max()), float64(b.out.Max())/float64(b.in.Max()))
	})
	shape := x.Shape
	for _, s := range samplers {
		shape = shape.With(s.axis, s.out)
		inner := at
		stage := l.Reduce("resize", expr.Sum, shape, x.Layout, extent.ShapeOf(s.taps), func(i, t []expr.Expr) expr.Expr {
			j := append([]expr.Expr{}, i...)
			j[s.axis] = s.position(i[s.axis], t[0])
			return expr.MulE(inner(j), s.weight.At(i[s.axis], t[0]))
		})
		at = func(i []expr.Expr) expr.Expr { return stage.At(i...) }
	}
	return at
}
