package op

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// sampler is a sampling in a kernel; weights have the computation type.
type sampler struct {
	*sampling
	positions, weights, outside Operand
}

func (l *Lowering) sampler(s *sampling, d array.DType) sampler {
	r := sampler{sampling: s}
	if _, regular := s.regular(expr.I(0)); !regular {
		r.positions = l.Made(l.budget.ints(s.index, s.out, s.taps))
	}
	if s.taps > 1 {
		w := l.budget.array(d, s.out, s.taps)
		for k, v := range s.weight {
			w.SetFloat(int64(k), v)
		}
		r.weights = l.Made(w)
	}
	if s.beyond != nil {
		b := l.budget.array(array.Bool, s.out)
		for k, v := range s.beyond {
			if v {
				b.SetInt(int64(k), 1)
			}
		}
		r.outside = l.Made(b)
	}
	return r
}

// regular returns the position of the only tap of element o if it is o divided by an integer, or a multiple of o
// and a constant, as for integral scales.
func (s *sampling) regular(o expr.Expr) (position expr.Expr, ok bool) {
	if s.taps != 1 {
		return nil, false
	}
	first, step := s.index[0], int64(0)
	if s.out > 1 {
		step = s.index[1] - first
	}
	repeat := int64(slices.IndexFunc(s.index, func(p int64) bool { return p != 0 }))
	multiple, quotient := true, repeat > 0
	for k, p := range s.index {
		multiple = multiple && p == first+int64(k)*step
		quotient = quotient && p == int64(k)/repeat
	}
	switch {
	case multiple:
		return expr.AddE(expr.MulE(o, expr.I(step)), expr.I(first)), true
	case quotient:
		return expr.Bin(expr.FloorDiv, o, expr.I(repeat)), true
	}
	return nil, false
}

// position returns the position of tap t of element o.
func (s sampler) position(o, t expr.Expr) expr.Expr {
	if p, ok := s.regular(o); ok {
		return p
	}
	return s.positions.At(o, t)
}

// fill returns the fill value for positions outside the operand with tf_crop_and_resize.
func (r *resize) fill(n *Node, samplers []sampler, i []expr.Expr, e expr.Expr) expr.Expr {
	for _, s := range samplers {
		if s.beyond != nil {
			e = expr.Sel(s.outside.At(i[s.axis]), expr.F(n.Out.DType, r.outside), e)
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
func lowerNearest(l *Lowering, n *Node, in []Operand) (Operand, error) {
	r, x := n.resize, l.Readable(in[0])
	samplers := r.samplers(l, array.Float32)
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		index := append([]expr.Expr{}, i...)
		for _, s := range samplers {
			index[s.axis] = s.position(i[s.axis], expr.I(0))
		}
		return r.fill(n, samplers, i, x.At(index...))
	}), nil
}

// maxCorners limits the elements that are weighted together: those of linear interpolation along three axes.
const maxCorners = 8

func lowerResize(l *Lowering, n *Node, in []Operand) (Operand, error) {
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
		corners *= min(s.taps, maxCorners+1)
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
	}), nil
}

// weighCorners interpolates along all axes at once, without intermediate storage.
func weighCorners(samplers []sampler, at func(i []expr.Expr) expr.Expr) func(i []expr.Expr) expr.Expr {
	for _, s := range samplers {
		inner := at
		at = func(i []expr.Expr) expr.Expr {
			var sum expr.Expr
			for t := range s.taps {
				j := append([]expr.Expr{}, i...)
				j[s.axis] = s.position(i[s.axis], expr.I(t))
				e := expr.MulE(inner(j), s.weights.At(i[s.axis], expr.I(t)))
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
		return cmp.Compare(float64(a.out)/float64(a.in), float64(b.out)/float64(b.in))
	})
	shape := append([]int64{}, x.Shape.Fixed()...)
	for _, s := range samplers {
		shape[s.axis] = s.out
		inner := at
		stage := l.Reduce("resize", expr.Sum, shape, x.Layout, []int64{s.taps}, func(i, t []expr.Expr) expr.Expr {
			j := append([]expr.Expr{}, i...)
			j[s.axis] = s.position(i[s.axis], t[0])
			return expr.MulE(inner(j), s.weights.At(i[s.axis], t[0]))
		})
		at = func(i []expr.Expr) expr.Expr { return stage.At(i...) }
	}
	return at
}
