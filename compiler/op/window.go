package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// window describes how a convolution or pooling slides over the spatial axes of its operand.
type window struct {
	kernel, stride, dilation []int64
	in, padBegin, padEnd     []extent.Extent
	out                      []extent.Extent
}

// maxWindow limits kernel sizes, strides, dilations and pads, so that no product of them overflows.
const maxWindow = 1 << 20

// newWindow reads the attributes; kernel comes from the weights or from kernel_shape.
func newWindow(n *Node, in extent.Shape, kernel []int64) (window, error) {
	rank := in.Rank()
	ones, zeros := slices.Repeat([]int64{1}, rank), make([]int64, 2*rank)
	w := window{in: in.Extents(), kernel: kernel, stride: n.Ints("strides", ones), dilation: n.Ints("dilations", ones)}
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
	w.padBegin, w.padEnd = slices.Clone(extent.Fixed(pads[:rank]...).Extents()), slices.Clone(extent.Fixed(pads[rank:]...).Extents())
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
	one := extent.Of(1)
	w.out = make([]extent.Extent, len(w.in))
	for k, size := range w.in {
		stride, reach := extent.Of(w.stride[k]), extent.Of(w.reach(k))
		switch auto {
		case "NOTSET", "":
		case "VALID":
			w.padBegin[k], w.padEnd[k] = extent.Of(0), extent.Of(0)
		case "SAME_UPPER", "SAME_LOWER":
			last := size.CeilOver(stride).Minus(one)
			total := last.Times(stride).Plus(reach).Minus(size).Most(extent.Of(0))
			w.padBegin[k] = total.Over(extent.Of(2))
			w.padEnd[k] = total.Minus(w.padBegin[k])
			if auto == "SAME_LOWER" {
				w.padBegin[k], w.padEnd[k] = w.padEnd[k], w.padBegin[k]
			}
		default:
			return fmt.Errorf("auto_pad %q is unknown", auto)
		}
		padded := size.Plus(w.padBegin[k]).Plus(w.padEnd[k])
		if !reach.AtMost(padded) {
			return fmt.Errorf("kernel of %v does not fit the padded extent %v%s", reach, padded, raise(padded))
		}
		room := padded.Minus(reach)
		w.out[k] = room.Over(stride).Plus(one)
		if n.Int("ceil_mode", 0) != 0 { // no window lies in the padding at the end alone
			starts := size.Plus(w.padBegin[k]).CeilOver(stride)
			w.out[k] = room.CeilOver(stride).Plus(one).Least(starts)
		}
	}
	return nil
}

// raise returns the remedy for an extent that is too small in some executions.
func raise(e extent.Extent) string {
	if e.IsOpen() {
		return " in all executions: raise the least extent by --shape"
	}
	return ""
}

// extent returns the range of the windows along axis k, counted from the first padded position.
func (w *window) extent(k int) extent.Extent {
	return w.out[k].Minus(extent.Of(1)).Times(extent.Of(w.stride[k])).Plus(extent.Of(w.reach(k)))
}

// at returns the position, counted from the first padded one, that output o reads with kernel element r.
func (w *window) at(k int, o, r expr.Expr) expr.Expr {
	return expr.AddE(expr.MulE(o, expr.I(w.stride[k])), expr.MulE(r, expr.I(w.dilation[k])))
}

// pad returns x with the padding that the windows reach. x has axes N, C and the spatial ones.
func (w *window) pad(l *Lowering, x Operand, fill expr.Expr) Operand {
	sizes := make([]extent.Extent, len(w.in))
	for k := range sizes {
		sizes[k] = w.extent(k)
	}
	return l.padSpatial(x, w.padBegin, sizes, fill)
}

// padSpatial returns the part of x, surrounded by fill, that starts begin[k] before the first element of spatial
// axis k (or after it, if negative) and has sizes[k] elements there: a stage in channels-last order, or x itself
// if it has that layout already and nothing is added or removed in front.
func (l *Lowering) padSpatial(x Operand, begin, sizes []extent.Extent, fill expr.Expr) Operand {
	layout := ChannelsLast(x.Shape.Rank())
	padded := false
	for k, e := range sizes {
		padded = padded || !begin[k].Is(0) || !e.AtMost(x.Shape.At(2+k))
	}
	if !padded && x.Tensor != nil && SameLayout(x.Shape.Max(), x.Layout, layout) {
		return x
	}
	name := "pad"
	if !padded {
		name = "layout"
	}
	x = l.Readable(x)
	moved, fill := x.inMemory(), expr.To(x.inMemory().DType, fill)
	shape := extent.Concat(x.Shape.Slice(0, 2), extent.ShapeOf(sizes...))
	stage := l.Map(name, shape, layout, func(i []expr.Expr) expr.Expr {
		index := append([]expr.Expr{}, i...)
		var inside expr.Expr = &expr.Int{Value: 1, Type: trueType}
		for k, e := range sizes {
			p := expr.SubE(i[2+k], l.Extent(begin[k]))
			index[2+k] = p
			if begin[k].Max() > 0 {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Le, expr.I(0), p))
			}
			if size := x.Shape.At(2 + k); !e.Minus(begin[k]).AtMost(size) {
				inside = expr.Bin(expr.And, inside, expr.Bin(expr.Lt, p, l.Extent(size)))
			}
		}
		return expr.Sel(inside, moved.At(index...), fill)
	})
	stage.DType = x.DType
	return stage
}

// inRange returns the condition 0 <= p < size.
func (l *Lowering) inRange(p expr.Expr, size extent.Extent) expr.Expr {
	return expr.Bin(expr.And, expr.Bin(expr.Le, expr.I(0), p), expr.Bin(expr.Lt, p, l.Extent(size)))
}

// windows returns the shape of a result with one element per channel and position.
func (w *window) windows(batch, channels extent.Extent) extent.Shape {
	return extent.Concat(extent.ShapeOf(batch, channels), extent.ShapeOf(w.out...))
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
