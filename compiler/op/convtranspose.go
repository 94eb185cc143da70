package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var convTransposeDefs = []Def{{
	Name: "ConvTranspose", Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "convtranspose",
	Infer: inferConvTranspose, Lower: lowerConvTranspose, Layout: channelsLastResult, Work: convTransposeWork, Detail: convTransposeDetail,
	Traits: Traits{Product: convTransposeProduct},
}}

// transposedWindow reads the attributes of a ConvTranspose of x with weights w. The window describes the
// convolution that is transposed: in is the extent of the result, out that of x.
func transposedWindow(n *Node, x extent.Shape, w []int64) (window, error) {
	rank := x.Rank() - 2
	ones := slices.Repeat([]int64{1}, rank)
	win := window{out: x.Slice(2, x.Rank()).Extents(), kernel: n.Ints("kernel_shape", w[2:]), stride: n.Ints("strides", ones), dilation: n.Ints("dilations", ones)}
	pads, extra := n.Ints("pads", make([]int64, 2*rank)), n.Ints("output_padding", make([]int64, rank))
	if !slices.Equal(win.kernel, w[2:]) || len(win.stride) != rank || len(win.dilation) != rank || len(pads) != 2*rank || len(extra) != rank {
		return win, fmt.Errorf("kernel_shape %v, strides %v, dilations %v, pads %v or output_padding %v do not fit weights %v",
			win.kernel, win.stride, win.dilation, pads, extra, w)
	}
	for k, size := range win.out {
		if err := win.check(k); err != nil {
			return win, err
		}
		if smallest := min(pads[k], pads[k+rank], extra[k]); smallest < -maxWindow || max(pads[k], pads[k+rank], extra[k]) > maxWindow {
			return win, fmt.Errorf("pads %v or output_padding %v are too large", pads, extra)
		}
		if size.Max() > 1<<32 {
			return win, fmt.Errorf("input %v is too large", x)
		}
	}
	win.padBegin, win.padEnd = slices.Clone(extent.Fixed(pads[:rank]...).Extents()), slices.Clone(extent.Fixed(pads[rank:]...).Extents())
	return win, win.placeTransposed(n, extra)
}

// placeTransposed computes the extents of the result; output_shape and auto_pad determine the pads, not the reverse.
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
		stride := extent.Of(w.stride[k])
		natural := w.out[k].Minus(extent.Of(1)).Times(stride).Plus(extent.Of(extra[k] + w.reach(k)))
		want := natural.Minus(w.padBegin[k]).Minus(w.padEnd[k])
		switch auto {
		case "NOTSET", "":
		case "VALID":
			want = natural
		case "SAME_UPPER", "SAME_LOWER":
			want = w.out[k].Times(stride)
		default:
			return fmt.Errorf("auto_pad %q is unknown", auto)
		}
		if given != nil {
			want = extent.Of(given[k])
		}
		if want.Min() < 1 || want.Max() > 1<<40 {
			return fmt.Errorf("the result would have extent %v%s", want, raise(want))
		}
		if given != nil || auto != "NOTSET" && auto != "" {
			total := natural.Minus(want).Most(extent.Of(0)) // a result longer than natural ends in zeros
			w.padEnd[k] = total.Over(extent.Of(2))
			w.padBegin[k] = total.Minus(w.padEnd[k])
			if auto == "SAME_UPPER" {
				w.padBegin[k], w.padEnd[k] = w.padEnd[k], w.padBegin[k]
			}
		}
		w.in = append(w.in, want)
	}
	return nil
}

func inferConvTranspose(n *Node) (Type, error) {
	d := Get(floats(n))
	x, w := n.In[0].Shape, n.In[1].Shape.Fixed()
	if x.Rank() < 3 || len(w) != x.Rank() {
		return Type{}, fmt.Errorf("input %v and weights %v do not fit", x, w)
	}
	channels := Get(channelsOf(x))
	groups := n.Int("group", 1)
	if groups < 1 || channels%groups != 0 || w[0] != channels {
		return Type{}, fmt.Errorf("input %v, weights %v and %d groups do not fit", x, w, groups)
	}
	if n.Has(2) && !n.In[2].Shape.Equal(extent.Fixed(w[1]*groups)) {
		return Type{}, fmt.Errorf("bias %v does not fit %d channels", n.In[2].Shape, w[1]*groups)
	}
	win := Get(transposedWindow(n, x, w))
	Get(newPhases(win, groups, w))
	return Type{d, extent.Concat(extent.ShapeOf(x.At(0), extent.Of(w[1]*groups)), extent.ShapeOf(win.in...))}, nil
}

// lowerConvTranspose orders the weights by phase, at compile time if they are known, and computes the phases.
func lowerConvTranspose(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(transposedWindow(n, n.In[0].Shape, n.In[1].Shape.Fixed()))
	p := Get(newPhases(win, n.Int("group", 1), n.In[1].Shape.Fixed()))
	taps := Get(l.settle(p.order(l, in[1])))
	return p.lower(l, n, in[0], taps, in)
}

func convTransposeWork(n *Node) float64 {
	return 2 * float64(array.Elements(n.In[0].Shape.Max())) * float64(array.Elements(n.In[1].Shape.Fixed()[1:]))
}

func convTransposeDetail(n *Node) string {
	text := windowDetail(transposedWindow(n, n.In[0].Shape, n.In[1].Shape.Fixed()))
	if g := n.Int("group", 1); g > 1 {
		text += fmt.Sprintf(" g%d", g)
	}
	return text
}
