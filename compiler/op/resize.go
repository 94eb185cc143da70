package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var resizeDefs = []Def{
	{Name: "Resize", Kind: Reduction, MinIn: 1, MaxIn: 4, Label: "resize", Infer: inferResize, Lower: lowerResize, Work: resizeWork},
	{Name: Upsample, Kind: Reduction, MinIn: 1, MaxIn: 2, Label: "resize", Infer: inferResize, Lower: lowerResize, Work: resizeWork},
}

// resize describes how a node samples its operand: one sampling for each axis that changes.
type resize struct {
	mode  string
	shape []int64
	axes  []*sampling
	// outside is the fill value for positions of tf_crop_and_resize beyond the operand.
	outside float64
}

func inferResize(n *Node) (Type, error) {
	if n.In[0].DType == array.Bool && n.Text("mode", "nearest") != "nearest" {
		return Type{}, fmt.Errorf("input %v has no numbers to interpolate", n.In[0].Type)
	}
	r, err := newResize(n)
	if err != nil {
		return Type{}, err
	}
	n.resize = r
	if r.mode == "nearest" {
		moves := *n.def
		moves.Kind = Injective
		n.def = &moves
	}
	return Type{n.In[0].DType, extent.Fixed(r.shape...)}, nil
}

func newResize(n *Node) (*resize, error) {
	extents, err := resizeExtents(n)
	if err != nil {
		return nil, err
	}
	mode, err := resizeMode(n)
	if err != nil {
		return nil, err
	}
	r := &resize{mode: mode, outside: n.Float("extrapolation_value", 0), shape: append([]int64{}, n.In[0].Shape.Fixed()...)}
	k, err := newKernel(n, mode)
	if err != nil {
		return nil, err
	}
	for _, e := range extents {
		r.shape[e.axis] = e.out
		if e.out > maxSamples {
			return nil, fmt.Errorf("the result would have extent %d on axis %d", e.out, e.axis)
		}
		if e.out == 0 {
			continue
		}
		s, err := k.sample(n.Budget, e)
		if err != nil {
			return nil, err
		}
		if !s.identity() {
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
	in, out    int64
	scale      float64
	start, end float64
}

// resizeExtents reads scales or sizes, in the form of the operator's version.
func resizeExtents(n *Node) ([]resizedAxis, error) {
	shape := n.In[0].Shape.Fixed()
	axes := make([]resizedAxis, len(shape))
	for k, e := range shape {
		axes[k] = resizedAxis{axis: k, in: e, scale: 1, end: 1}
	}
	if list := n.Ints("axes", nil); list != nil {
		n.axes(list, len(shape))
		if n.err != nil {
			return nil, n.err
		}
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
	if sizes > 0 && n.Has(sizes) && array.Elements(n.In[sizes].Shape.Fixed()) > 0 {
		return axes, readSizes(n, sizes, axes)
	}
	return axes, readScales(n, scales, axes)
}

func readScales(n *Node, k int, axes []resizedAxis) error {
	var scales []float64
	if a := n.Attrs["scales"]; n.Op == Upsample && a != nil {
		for _, v := range a.Floats {
			scales = append(scales, float64(v))
		}
	} else {
		var err error
		if scales, err = n.knownFloats(k, "scales"); err != nil {
			return err
		}
	}
	if len(scales) != len(axes) {
		return fmt.Errorf("%d scales for %d axes", len(scales), len(axes))
	}
	for k := range axes {
		a := &axes[k]
		if !(scales[k] > 0 && scales[k] <= maxSamples) {
			return fmt.Errorf("scale %g is out of range", scales[k])
		}
		a.scale = scales[k]
		a.out = int64(math.Floor(float64(a.in) * a.scale))
		if n.Text("coordinate_transformation_mode", "") == "tf_crop_and_resize" {
			a.out = int64(math.Floor(float64(a.in) * (a.end - a.start) * a.scale))
		}
		if a.out < 0 {
			return fmt.Errorf("the result would have extent %d on axis %d", a.out, a.axis)
		}
	}
	return nil
}

// readSizes applies the policy for the aspect ratio, if any: the smallest or largest scale for all axes.
func readSizes(n *Node, k int, axes []resizedAxis) error {
	sizes := n.KnownInts(k, "sizes")
	if n.err != nil {
		return n.err
	}
	if len(sizes) != len(axes) {
		return fmt.Errorf("%d sizes for %d axes", len(sizes), len(axes))
	}
	lo, hi := math.Inf(1), 0.0
	for k := range axes {
		a := &axes[k]
		if sizes[k] < 0 || sizes[k] > maxSamples || a.in == 0 {
			return fmt.Errorf("size %d is out of range for axis %d of %v", sizes[k], a.axis, n.In[0].Type)
		}
		a.out, a.scale = sizes[k], float64(sizes[k])/float64(a.in)
		lo, hi = min(lo, a.scale), max(hi, a.scale)
	}
	common := lo
	switch policy := n.Text("keep_aspect_ratio_policy", "stretch"); policy {
	case "stretch":
		return nil
	case "not_larger":
	case "not_smaller":
		common = hi
	default:
		return fmt.Errorf("keep_aspect_ratio_policy %q is unknown", policy)
	}
	for k := range axes {
		axes[k].scale = common
		axes[k].out = int64(math.Floor(common*float64(axes[k].in) + 0.5))
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
	roi, err := n.knownFloats(k, "roi")
	if err != nil {
		return err
	}
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
	work := float64(array.Elements(n.Out.Shape.Fixed()))
	for _, s := range n.resize.axes {
		work *= float64(s.taps)
	}
	return work
}
