package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// window describes how a convolution or pooling slides over the spatial axes of its operand.
type window struct {
	in, kernel, stride, dilation []int64
	padBegin, padEnd             []int64
	out                          []int64
}

// maxWindow limits kernel sizes, strides, dilations and pads, so that no product of them overflows.
const maxWindow = 1 << 20

// newWindow reads the attributes; kernel comes from the weights or from kernel_shape.
func newWindow(n *Node, in, kernel []int64) (window, error) {
	rank := len(in)
	ones, zeros := slices.Repeat([]int64{1}, rank), make([]int64, 2*rank)
	w := window{in: in, kernel: kernel, stride: n.Ints("strides", ones), dilation: n.Ints("dilations", ones)}
	pads := n.Ints("pads", zeros)
	if len(kernel) != rank || len(w.stride) != rank || len(w.dilation) != rank || len(pads) != 2*rank {
		return w, fmt.Errorf("kernel %v, strides %v, dilations %v or pads %v do not fit %d spatial axes",
			kernel, w.stride, w.dilation, pads, rank)
	}
	for k := range rank {
		if err := w.check(k); err != nil {
			return w, err
		}
		if min(pads[k], pads[k+rank]) < 0 || max(pads[k], pads[k+rank]) > maxWindow {
			return w, fmt.Errorf("pads %v are outside 0 to %d", pads, maxWindow)
		}
	}
	w.padBegin, w.padEnd = append([]int64{}, pads[:rank]...), append([]int64{}, pads[rank:]...)
	return w, w.place(n)
}

// check checks the attributes of axis k that determine the distances between elements.
func (w *window) check(k int) error {
	for _, v := range []int64{w.kernel[k], w.stride[k], w.dilation[k]} {
		if v < 1 || v > maxWindow {
			return fmt.Errorf("kernel, stride or dilation %d is outside 1 to %d", v, maxWindow)
		}
	}
	return nil
}

// reach returns the extent of the dilated kernel.
func (w *window) reach(k int) int64 { return (w.kernel[k]-1)*w.dilation[k] + 1 }

// place computes the pads of auto_pad and the number of positions.
func (w *window) place(n *Node) error {
	auto := n.Text("auto_pad", "NOTSET")
	w.out = make([]int64, len(w.in))
	for k := range w.in {
		switch auto {
		case "NOTSET", "":
		case "VALID":
			w.padBegin[k], w.padEnd[k] = 0, 0
		case "SAME_UPPER", "SAME_LOWER":
			positions := (w.in[k] + w.stride[k] - 1) / w.stride[k]
			total := max(0, (positions-1)*w.stride[k]+w.reach(k)-w.in[k])
			w.padBegin[k], w.padEnd[k] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				w.padBegin[k], w.padEnd[k] = w.padEnd[k], w.padBegin[k]
			}
		default:
			return fmt.Errorf("auto_pad %q is unknown", auto)
		}
		room := w.in[k] + w.padBegin[k] + w.padEnd[k] - w.reach(k)
		if room < 0 {
			return fmt.Errorf("kernel of %d does not fit the padded extent %d", w.reach(k), room+w.reach(k))
		}
		w.out[k] = room/w.stride[k] + 1
		if n.Int("ceil_mode", 0) != 0 {
			w.out[k] = (room+w.stride[k]-1)/w.stride[k] + 1
			if (w.out[k]-1)*w.stride[k] >= w.in[k]+w.padBegin[k] { // the last window would lie in the padding alone
				w.out[k]--
			}
		}
	}
	return nil
}

// extent returns the range of the windows along axis k, counted from the first padded position.
func (w *window) extent(k int) int64 { return (w.out[k]-1)*w.stride[k] + w.reach(k) }

// at returns the position, counted from the first padded one, that output o reads with kernel element r.
func (w *window) at(k int, o, r expr.Expr) expr.Expr {
	return expr.AddE(expr.MulE(o, expr.I(w.stride[k])), expr.MulE(r, expr.I(w.dilation[k])))
}

// pad returns x with the padding that the windows reach. x has axes N, C and the spatial ones.
func (w *window) pad(l *Lowering, x Operand, fill expr.Expr) Operand {
	extent := make([]int64, len(w.in))
	for k := range extent {
		extent[k] = w.extent(k)
	}
	return l.padSpatial(x, w.padBegin, extent, fill)
}

// padSpatial returns the part of x, surrounded by fill, that starts begin[k] before the first element of spatial
// axis k (or after it, if negative) and has extent[k] elements there: a stage in channels-last order, or x itself
// if it has that layout already and nothing is added or removed in front.
func (l *Lowering) padSpatial(x Operand, begin, extent []int64, fill expr.Expr) Operand {
	layout := ChannelsLast(x.Shape.Rank())
	shape := append([]int64{}, x.Shape.Fixed()[:2]...)
	padded := false
	for k, e := range extent {
		shape = append(shape, e)
		padded = padded || begin[k] != 0 || e > x.Shape.Fixed()[2+k]
	}
	if !padded && x.Tensor != nil && SameLayout(x.Shape.Fixed(), x.Layout, layout) {
		return x
	}
	name := "pad"
	if !padded {
		name = "layout"
	}
	x = l.Readable(x)
	moved, fill := x.inMemory(), expr.To(x.inMemory().DType, fill)
	stage := l.Map(name, shape, layout, func(i []expr.Expr) expr.Expr {
		index := append([]expr.Expr{}, i...)
		var inside expr.Expr = &expr.Int{Value: 1, Type: trueType}
		for k, e := range extent {
			p := expr.SubE(i[2+k], expr.I(begin[k]))
			index[2+k] = p
			if begin[k] > 0 {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Le, expr.I(0), p))
			}
			if e-begin[k] > x.Shape.Fixed()[2+k] {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Lt, p, expr.I(x.Shape.Fixed()[2+k])))
			}
		}
		return expr.Sel(inside, moved.At(index...), fill)
	})
	stage.DType = x.DType
	return stage
}

// windowDetail describes a node's window; "" if its attributes are invalid.
func windowDetail(w window, err error) string {
	if err != nil {
		return ""
	}
	return w.String()
}

// String returns for example "k3x3 s2".
func (w *window) String() string {
	text := "k" + times(w.kernel)
	if !allOnes(w.stride) {
		text += " s" + times(w.stride)
	}
	if !allOnes(w.dilation) {
		text += " d" + times(w.dilation)
	}
	return text
}

func times(v []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", "x"), "[]")
}

func allOnes(v []int64) bool {
	return !slices.ContainsFunc(v, func(e int64) bool { return e != 1 })
}
