package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// The operators that a transposed convolution is computed by. They stand in no model.
const (
	// TapsName orders weights by output phase.
	TapsName = "convtranspose.taps"
	// PhasesName is the transposed convolution with weights that are ordered so.
	PhasesName = "convtranspose.phases"
)

var convTransposeDefs = []Def{
	{
		Name: "ConvTranspose", Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "convtranspose",
		Infer: inferConvTranspose, Lower: lowerConvTranspose, Layout: channelsLastResult, Work: convTransposeWork,
	},
	{
		Name: TapsName, Kind: Injective, MinIn: 1, MaxIn: 1, Label: "taps",
		Infer: func(n *Node) (Type, error) {
			p, err := newPhases(n, n.In[0].Shape)
			if err != nil {
				return Type{}, err
			}
			return Type{n.In[0].DType, p.tapsShape()}, nil
		},
		Lower: func(l *Lowering, n *Node, in []Operand) (Operand, error) {
			p, err := newPhases(n, n.In[0].Shape)
			if err != nil {
				return Operand{}, err
			}
			return p.order(l, in[0]), nil
		},
		Layout: rowMajorResult,
	},
	{
		Name: PhasesName, Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "convtranspose",
		Infer: inferPhases, Lower: lowerPhases, Layout: channelsLastResult, Work: phasesWork, Detail: phasesDetail,
	},
}

// transposedWindow reads the attributes of a ConvTranspose of x with weights w. The window's operand and result are those
// of the convolution that is transposed: in is the extent of the result, out that of x.
func transposedWindow(n *Node, x, w []int64) (window, error) {
	rank := len(x) - 2
	ones := make([]int64, rank)
	for k := range ones {
		ones[k] = 1
	}
	win := window{out: x[2:], kernel: n.Ints("kernel_shape", w[2:]), stride: n.Ints("strides", ones), dilation: n.Ints("dilations", ones)}
	pads, extra := n.Ints("pads", make([]int64, 2*rank)), n.Ints("output_padding", make([]int64, rank))
	if !sameShape(win.kernel, w[2:]) || len(win.stride) != rank || len(win.dilation) != rank || len(pads) != 2*rank || len(extra) != rank {
		return win, fmt.Errorf("kernel_shape %v, strides %v, dilations %v, pads %v or output_padding %v do not fit weights %v",
			win.kernel, win.stride, win.dilation, pads, extra, w)
	}
	for k := range rank {
		for _, v := range []int64{win.kernel[k], win.stride[k], win.dilation[k]} {
			if v < 1 || v > maxWindow {
				return win, fmt.Errorf("kernel, stride or dilation %d is outside 1 to %d", v, maxWindow)
			}
		}
		if least := min(pads[k], pads[k+rank], extra[k]); least < -maxWindow || max(pads[k], pads[k+rank], extra[k]) > maxWindow {
			return win, fmt.Errorf("pads %v or output_padding %v are too large", pads, extra)
		}
		if x[2+k] > 1<<32 {
			return win, fmt.Errorf("input %v is too large", x)
		}
	}
	win.padBegin, win.padEnd = append([]int64{}, pads[:rank]...), append([]int64{}, pads[rank:]...)
	return win, win.placeTransposed(n, extra)
}

// placeTransposed computes the extents of the result; output_shape and auto_pad decide the pads instead of being decided by
// them.
func (w *window) placeTransposed(n *Node, extra []int64) error {
	rank := len(w.out)
	auto := n.Text("auto_pad", "NOTSET")
	given := n.Ints("output_shape", nil)
	if len(given) == rank+2 { // some exporters give N and C too
		given = given[2:]
	}
	if given != nil && len(given) != rank {
		return fmt.Errorf("output_shape %v does not fit %d spatial axes", given, rank)
	}
	for k := range rank {
		natural := (w.out[k]-1)*w.stride[k] + extra[k] + w.reach(k)
		want := natural - w.padBegin[k] - w.padEnd[k]
		switch auto {
		case "NOTSET", "":
		case "VALID":
			want = natural
		case "SAME_UPPER", "SAME_LOWER":
			want = w.out[k] * w.stride[k]
		default:
			return fmt.Errorf("auto_pad %q is unknown", auto)
		}
		if given != nil {
			want = given[k]
		}
		if want < 1 || want > 1<<40 {
			return fmt.Errorf("the result would have extent %d", want)
		}
		if given != nil || auto != "NOTSET" && auto != "" {
			total := max(0, natural-want) // what is longer than natural ends in zeros
			w.padBegin[k] = total - total/2
			if auto == "SAME_UPPER" {
				w.padBegin[k] = total / 2
			}
			w.padEnd[k] = total - w.padBegin[k]
		}
		w.in = append(w.in, want)
	}
	return nil
}

func inferConvTranspose(n *Node) (Type, error) {
	d, err := floats(n)
	if err != nil {
		return Type{}, err
	}
	x, w := n.In[0].Shape, n.In[1].Shape
	if len(x) < 3 || len(w) != len(x) {
		return Type{}, fmt.Errorf("input %v and weights %v do not fit", x, w)
	}
	groups := n.Int("group", 1)
	if groups < 1 || x[1]%groups != 0 || w[0] != x[1] {
		return Type{}, fmt.Errorf("input %v, weights %v and %d groups do not fit", x, w, groups)
	}
	if n.Has(2) && !sameShape(n.In[2].Shape, []int64{w[1] * groups}) {
		return Type{}, fmt.Errorf("bias %v does not fit %d channels", n.In[2].Shape, w[1]*groups)
	}
	win, err := transposedWindow(n, x, w)
	if err != nil {
		return Type{}, err
	}
	return Type{d, append([]int64{x[0], w[1] * groups}, win.in...)}, nil
}

// PhaseAttrs are the attributes of the operators TapsName and PhasesName that together compute n, a ConvTranspose.
func PhaseAttrs(n *Node) (map[string]*onnx.Attribute, error) {
	win, err := transposedWindow(n, n.In[0].Shape, n.In[1].Shape)
	if err != nil {
		return nil, err
	}
	groups := n.Int("group", 1)
	attrs := map[string]*onnx.Attribute{
		"group":    {Name: "group", Type: onnx.AttrInt, Int: groups},
		"channels": {Name: "channels", Type: onnx.AttrInt, Int: groups * n.In[1].Shape[1]},
	}
	for name, v := range map[string][]int64{
		"strides": win.stride, "dilations": win.dilation, "kernel_shape": win.kernel, "pads": win.padBegin, "output_shape": win.in,
	} {
		attrs[name] = &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
	}
	return attrs, nil
}

// lowerConvTranspose orders the weights within the kernel.
func lowerConvTranspose(l *Lowering, n *Node, in []Operand) (Operand, error) {
	attrs, err := PhaseAttrs(n)
	if err != nil {
		return Operand{}, err
	}
	m := *n
	m.Attrs = attrs
	p, err := newPhases(&m, n.In[1].Shape)
	if err != nil {
		return Operand{}, err
	}
	return p.lower(l, &m, in[0], p.order(l, in[1]), in), nil
}

func convTransposeWork(n *Node) float64 {
	return 2 * float64(array.Elements(n.In[0].Shape)) * float64(array.Elements(n.In[1].Shape[1:]))
}
