package op

import (
	"fmt"
	"math"
)

// sampling lists the elements along an axis that contribute to each element of the result, with their weights.
type sampling struct {
	axis    int
	in, out int64
	// taps is the number of elements for each of the result.
	taps int64
	// index[o*taps+t] is the position of tap t, weight its weight; all are inside the axis.
	index  []int64
	weight []float64
	// beyond, if not nil, flags elements that tf_crop_and_resize takes from outside the operand.
	beyond []bool
}

// kernel is the interpolation of a Resize, by ONNX's definition and reference implementation.
type kernel struct {
	// place maps a position of the result to one of the operand.
	place func(o float64, a resizedAxis) (float64, bool)
	// round returns the nearest position, for mode nearest.
	round func(x, scale float64) float64
	// weight is the filter, of the given radius, for the other modes.
	weight func(distance float64) float64
	radius float64
	// antialias stretches the filter if the axis shrinks; exclude drops taps outside; crop fills them.
	antialias, exclude, crop bool
}

func newKernel(n *Node, mode string) (*kernel, error) {
	transformation := n.Text("coordinate_transformation_mode", "half_pixel")
	if n.Op == Upsample || n.Opset < 11 {
		transformation = "asymmetric"
	}
	k := &kernel{
		place: func(o float64, a resizedAxis) (float64, bool) { return placeOf(transformation, o, a) }, antialias: n.Int("antialias", 0) != 0,
		exclude: n.Int("exclude_outside", 0) != 0, crop: transformation == "tf_crop_and_resize",
	}
	if _, ok := k.place(0, resizedAxis{scale: 1, out: 1}); !ok {
		return nil, fmt.Errorf("coordinate_transformation_mode %q is unknown", transformation)
	}
	switch mode {
	case "nearest": // ONNX Runtime decides ties in float32
		k.place = func(o float64, a resizedAxis) (float64, bool) {
			x, ok := placeOf(transformation, float32(o), a)
			return float64(x), ok
		}
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
		k.radius, k.weight = 1, func(d float64) float64 { return max(0, 1-math.Abs(d)) }
	default:
		a := n.Float("cubic_coeff_a", -0.75)
		k.radius, k.weight = 2, func(d float64) float64 { return cubicWeight(math.Abs(d), a) }
	}
	return k, n.err
}

// cubicWeight is Keys' kernel ("Cubic convolution interpolation for digital image processing", 1981).
func cubicWeight(d, a float64) float64 {
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return a * (((d-5)*d+8)*d - 4)
	}
	return 0
}

// placeOf maps position o of the result to one of the operand; false if the transformation is unknown. Products are
// converted so that no processor adds to them before they are rounded.
//
//nolint:unconvert // a conversion rounds: it prevents a fused multiply-add
func placeOf[F float32 | float64](transformation string, o F, a resizedAxis) (F, bool) {
	in, out, scale, start, end := F(a.in), F(a.out), F(a.scale), F(a.start), F(a.end)
	half := (o+0.5)/scale - 0.5
	switch transformation {
	case "half_pixel":
		return half, true
	case "half_pixel_symmetric":
		return F(in/2*(1-out/(in*scale))) + half, true
	case "tf_half_pixel_for_nn":
		return (o + 0.5) / scale, true
	case "asymmetric":
		return F(float64(o) / a.scale), true // the scale is not rounded
	case "tf_crop_and_resize":
		if a.out == 1 {
			return (start + end) / 2 * (in - 1), true
		}
		return F(start*(in-1)) + o*(end-start)*(in-1)/(out-1), true
	case "pytorch_half_pixel":
		if a.out == 1 {
			return 0, true
		}
		return half, true
	case "align_corners":
		if a.out == 1 {
			return 0, true
		}
		return o * (in - 1) / (F(scale*in) - 1), true // not out-1: ONNX's reference does not round the extent
	}
	return 0, false
}

var roundings = map[string]func(x, scale float64) float64{
	"round_prefer_floor": func(x, _ float64) float64 { return math.Ceil(x - 0.5) },
	"round_prefer_ceil":  func(x, _ float64) float64 { return math.Floor(x + 0.5) },
	"floor":              func(x, _ float64) float64 { return math.Floor(x) },
	"ceil":               func(x, _ float64) float64 { return math.Ceil(x) },
	"simple": func(x, scale float64) float64 { // the behaviour of ONNX Runtime for opset 10, which does not specify it
		if scale < 1 {
			return math.Ceil(x)
		}
		return math.Floor(x)
	},
}

// sample computes the sampling of an axis of at least one element.
func (k *kernel) sample(b *Budget, a resizedAxis) (*sampling, error) {
	if a.in == 0 {
		return nil, fmt.Errorf("nothing to sample on axis %d", a.axis)
	}
	s := &sampling{axis: a.axis, in: a.in, out: a.out, taps: 1}
	stretch := 1.0
	if k.weight != nil {
		if k.antialias {
			stretch = min(1, a.scale)
		}
		s.taps = 2 * int64(math.Ceil(k.radius/stretch))
	}
	if s.taps > maxSamples/s.out {
		return nil, fmt.Errorf("axis %d shrinks too far: %d elements for each of %d", a.axis, s.taps, s.out)
	}
	b.Bytes(s.out * (16*s.taps + 1))
	s.index, s.weight = make([]int64, 0, s.out*s.taps), make([]float64, 0, s.out*s.taps)
	for o := range s.out {
		x, _ := k.place(float64(o), a)
		if k.crop {
			s.beyond = append(s.beyond, x < 0 || x > float64(s.in-1))
		}
		if k.weight == nil {
			s.add(k.round(x, a.scale), 1)
		} else {
			k.addTaps(s, x, stretch)
		}
	}
	return s, nil
}

func (s *sampling) add(position, weight float64) {
	s.index = append(s.index, int64(max(0, min(position, float64(s.in-1)))))
	s.weight = append(s.weight, weight)
}

// addTaps weights the elements around position x; their weights add up to one.
func (k *kernel) addTaps(s *sampling, x, stretch float64) {
	first := math.Floor(x) - float64(s.taps/2-1)
	weights := make([]float64, s.taps)
	sum := 0.0
	for t := range weights {
		at := first + float64(t)
		if k.exclude && (at < 0 || at > float64(s.in-1)) {
			continue
		}
		weights[t] = k.weight((at - x) * stretch)
		sum += weights[t]
	}
	for t, w := range weights {
		if sum != 0 {
			w /= sum
		}
		s.add(first+float64(t), w)
	}
}

// identity reports whether the sampling changes nothing.
func (s *sampling) identity() bool {
	if s.in != s.out {
		return false
	}
	for o := range s.out {
		if s.beyond != nil && s.beyond[o] {
			return false
		}
		for t := range s.taps {
			if w := s.weight[o*s.taps+t]; w != 0 && (s.index[o*s.taps+t] != o || s.taps > 1 && w != 1) {
				return false
			}
		}
	}
	return true
}
