package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var resizeDefs = []Def{
	{Name: "Resize", Kind: Reduction, MinIn: 1, MaxIn: 4, Label: "resize", Infer: inferResize, Lower: lowerResize, Work: resizeWork},
	{Name: Upsample, Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "resize", Infer: inferResize, Lower: lowerResize, Work: resizeWork},
}

// resize describes how a node samples its operand: one sampling for each axis that changes.
type resize struct {
	mode  string
	shape extent.Shape
	axes  []*sampling
	// outside is the fill value for positions of tf_crop_and_resize beyond the operand.
	outside float64
}

func inferResize(n *Node) (Type, error) {
	if n.In[0].DType == array.Bool && n.Text("mode", "nearest") != "nearest" {
		return Type{}, fmt.Errorf("input %v has no numbers to interpolate", n.In[0].Type)
	}
	r := Get(newResize(n))
	n.resize = r
	if r.mode == "nearest" {
		moves := *n.def
		moves.Kind = Injective
		n.def = &moves
	}
	return Type{n.In[0].DType, r.shape}, nil
}

func newResize(n *Node) (*resize, error) {
	extents, mode := Get(resizeExtents(n)), Get(resizeMode(n))
	r := &resize{mode: mode, outside: n.Float("extrapolation_value", 0), shape: n.In[0].Shape}
	k := Get(newKernel(n, mode))
	for _, e := range extents {
		r.shape = r.shape.With(e.axis, e.out)
		if e.out.Max() > maxSamples {
			return nil, fmt.Errorf("the result would have extent %v on axis %d", e.out, e.axis)
		}
		if e.out.Max() == 0 {
			continue
		}
		if s := Get(k.sample(n.Budget, e)); s != nil {
			r.axes = append(r.axes, s)
		}
	}
	return r, n.err
}

// maxSamples limits the extents and the number of weights along one axis.
const maxSamples = 1 << 24

func resizeMode(n *Node) (string, error) {
	switch mode := n.Text("mode", "nearest"); mode {
	case "nearest", "linear", "cubic":
		return mode, n.err
	case "bilinear", "trilinear": // the former names in Upsample
		return "linear", n.err
	default:
		return "", fmt.Errorf("mode %q is unknown", mode)
	}
}

// resizedAxis is one axis with its scale and the sampled part, relative to its length.
type resizedAxis struct {
	axis       int
	in, out    extent.Extent
	scale      scale
	start, end float64
}

// scale is a factor, or, if that is zero, a ratio that depends on open extents.
type scale struct {
	factor   float64
	of, over extent.Extent
}

// ratio returns the scale from one extent to another.
func ratio(out, in extent.Extent) scale {
	n, isConst := out.Const()
	m, areConst := in.Const()
	if isConst && areConst {
		return scale{factor: float64(n) / float64(m)}
	}
	if out == in {
		return scale{factor: 1}
	}
	if q, ok := out.Over(in).Const(); ok && in.Times(extent.Of(q)) == out {
		return scale{factor: float64(q)}
	}
	if q, ok := in.Over(out).Const(); ok && out.Times(extent.Of(q)) == in {
		return scale{factor: 1 / float64(q)}
	}
	return scale{of: out, over: in}
}

func (s scale) fixed() bool { return s.factor != 0 }

// as returns the scale as f64.
func (s scale) as(l *Lowering) expr.Expr {
	const d = array.Float64
	if s.fixed() {
		return expr.F(d, s.factor)
	}
	return expr.DivE(count{l, s.of}.as(d), count{l, s.over}.as(d))
}

// times returns the scaled extent, rounded down; ok is false if the scale has too many digits for that.
func (s scale) times(e extent.Extent) (scaled extent.Extent, ok bool) {
	if !s.fixed() {
		return e.Times(s.of).Over(s.over), true
	}
	if n, ok := e.Const(); ok {
		return extent.Of(int64(math.Floor(float64(n) * s.factor))), true
	}
	over := int64(1)
	for s.factor*float64(over) != math.Floor(s.factor*float64(over)) && over < 1<<48 {
		over *= 2
	}
	of := s.factor * float64(over)
	return e.Times(extent.Of(int64(of))).Over(extent.Of(over)), of == math.Floor(of) && of*float64(e.Max()) < 1<<62
}

// resizeExtents reads scales or sizes, in the form of the operator's version.
func resizeExtents(n *Node) ([]resizedAxis, error) {
	shape := n.In[0].Shape.Extents()
	axes := make([]resizedAxis, len(shape))
	for k, e := range shape {
		axes[k] = resizedAxis{axis: k, in: e, scale: scale{factor: 1}, end: 1}
	}
	if list := n.Ints("axes", nil); list != nil {
		n.axes(list, len(shape))
		n.check()
		chosen := make([]resizedAxis, len(list))
		for k, v := range list {
			chosen[k] = axes[n.axis(v, len(shape))]
		}
		axes = chosen
	}
	roi, scales, sizes := 1, 2, 3
	if n.Op == Upsample || n.Opset < 11 {
		roi, scales, sizes = -1, 1, -1
	}
	if err := readRegion(n, roi, axes); err != nil {
		return nil, err
	}
	if sizes > 0 && n.Has(sizes) && !n.In[sizes].Shape.IsEmpty() {
		return axes, readSizes(n, sizes, axes)
	}
	return axes, readScales(n, scales, axes)
}

func readScales(n *Node, k int, axes []resizedAxis) error {
	scales := Get(knownScales(n, k))
	if len(scales) != len(axes) {
		return fmt.Errorf("%d scales for %d axes", len(scales), len(axes))
	}
	for k := range axes {
		a := &axes[k]
		a.scale = scales[k]
		part := a.scale
		if n.Text("coordinate_transformation_mode", "") == "tf_crop_and_resize" && a.end-a.start != 1 {
			if size, ok := a.in.Const(); ok && part.fixed() {
				a.out = extent.Of(int64(math.Floor(float64(size) * (a.end - a.start) * part.factor)))
				if a.out.Max() < 0 {
					return fmt.Errorf("the result would have extent %v on axis %d", a.out, a.axis)
				}
				continue
			}
			return fmt.Errorf("a scaled part of axis %d, whose extent or scale is open, is not supported: fix it by --shape", a.axis)
		}
		var ok bool
		if a.out, ok = part.times(a.in); !ok {
			return fmt.Errorf("scale %g of axis %d is not a short binary fraction, which is not supported for the open extent %v: fix it by --shape", part.factor, a.axis, a.in)
		}
	}
	return nil
}

// knownScales returns operand k, or the attribute of an older version.
func knownScales(n *Node, k int) (scales []scale, _ error) {
	if n.Has(k) && n.In[k].Numbers != nil {
		for _, x := range n.In[k].Numbers {
			if x.Of.Min() < 1 || x.Of.Max() > maxSamples*x.Over {
				return nil, fmt.Errorf("scale %v/%d is out of range", x.Of, x.Over)
			}
			if c, ok := x.Of.Const(); ok {
				scales = append(scales, scale{factor: float64(c) / float64(x.Over)})
			} else {
				scales = append(scales, scale{of: x.Of, over: extent.Of(x.Over)})
			}
		}
		return scales, nil
	}
	var factors []float64
	if a := n.Attrs["scales"]; n.Op == Upsample && a != nil {
		for _, v := range a.Floats {
			factors = append(factors, float64(v))
		}
	} else {
		factors = Get(n.knownFloats(k, "scales"))
	}
	for _, f := range factors {
		if !(f > 0 && f <= maxSamples) {
			return nil, fmt.Errorf("scale %g is out of range", f)
		}
		scales = append(scales, scale{factor: f})
	}
	return scales, nil
}

// readSizes applies the policy for the aspect ratio, if any: the smallest or largest scale for all axes.
func readSizes(n *Node, k int, axes []resizedAxis) error {
	sizes := n.KnownExtents(k, "sizes")
	n.check()
	if len(sizes) != len(axes) {
		return fmt.Errorf("%d sizes for %d axes", len(sizes), len(axes))
	}
	lo, hi, open := math.Inf(1), 0.0, -1
	for k := range axes {
		a := &axes[k]
		if sizes[k].Min() < 0 || sizes[k].Max() > maxSamples || a.in.Min() < 1 && (a.in.Is(0) || sizes[k] != a.in) {
			return fmt.Errorf("size %v is out of range for axis %d of %v%s", sizes[k], a.axis, n.In[0].Type, raise(a.in))
		}
		a.out, a.scale = sizes[k], ratio(sizes[k], a.in)
		if !a.scale.fixed() && !a.out.Is(0) {
			open = a.axis
		}
		lo, hi = min(lo, a.scale.factor), max(hi, a.scale.factor)
	}
	common := lo
	policy := n.Text("keep_aspect_ratio_policy", "stretch")
	switch policy {
	case "stretch":
		return nil
	case "not_larger":
	case "not_smaller":
		common = hi
	default:
		return fmt.Errorf("keep_aspect_ratio_policy %q is unknown", policy)
	}
	if open >= 0 {
		return fmt.Errorf("keep_aspect_ratio_policy %q is not supported where the scale of axis %d is open: fix it by --shape", policy, open)
	}
	for k := range axes {
		a := &axes[k]
		n, ok := a.in.Const()
		switch {
		case ok:
			a.out = extent.Of(int64(math.Floor(common*float64(n) + 0.5)))
		case a.scale.factor != common:
			return fmt.Errorf("keep_aspect_ratio_policy %q is not supported where the extent %v of axis %d is open: fix it by --shape", policy, a.in, a.axis)
		}
		a.scale = scale{factor: common}
	}
	return nil
}

// readRegion reads the starts and ends of the part that tf_crop_and_resize samples.
func readRegion(n *Node, k int, axes []resizedAxis) error {
	if n.Text("coordinate_transformation_mode", "") != "tf_crop_and_resize" {
		return nil
	}
	if k < 0 || !n.Has(k) {
		return fmt.Errorf("tf_crop_and_resize needs input 1 (roi)")
	}
	roi := Get(n.knownFloats(k, "roi"))
	if len(roi) != 2*len(axes) {
		return fmt.Errorf("%d numbers in input 1 (roi) for %d axes", len(roi), len(axes))
	}
	for k := range axes {
		axes[k].start, axes[k].end = roi[k], roi[k+len(axes)]
		if !(math.Abs(roi[k]) < 1e6 && math.Abs(roi[k+len(axes)]) < 1e6) {
			return fmt.Errorf("input 1 (roi) %v is out of range", roi)
		}
	}
	return nil
}

// knownFloats returns operand k, which must be known, as a list of numbers.
func (n *Node) knownFloats(k int, what string) ([]float64, error) {
	if !n.Has(k) || n.In[k].Const == nil || n.In[k].Const.Len() > maxListed {
		return nil, fmt.Errorf("input %d (%s) is not a constant list: dynamic shapes are not supported, export the model with static shapes", k, what)
	}
	a := n.In[k].Const
	values := make([]float64, a.Len())
	for i := range values {
		values[i] = a.Float(int64(i))
	}
	return values, nil
}

func resizeWork(n *Node) float64 {
	work := float64(array.Elements(n.Out.Shape.Max()))
	for _, s := range n.resize.axes {
		work *= float64(s.taps.Max())
	}
	return work
}
