package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// The operators below stand in no model: package expand writes means of bytes with them.
const (
	// WindowSum is the sum of the integers of up to 32 bits in each window of a pooling, in i32. The attribute "fill"
	// is what padding has; zero when it is left out.
	WindowSum = "window_sum"
	// ImageSum is the sum of such integers over all spatial axes, whose extents become 1, in i32.
	ImageSum = "image_sum"
)

// integerPoolDef is a pooling of integers, whose result has the shape that infer says.
func integerPoolDef(d Def, infer func(n *Node) (Type, error)) Def {
	d.Internal = true
	d.Infer = func(n *Node) (Type, error) {
		if _, err := integers(n); err != nil {
			return Type{}, err
		}
		t, err := infer(n)
		t.DType = array.Int32
		return t, err
	}
	return d
}

func lowerWindowSum(l *Lowering, n *Node, in []Operand) (Operand, error) {
	win, err := poolWindow(n)
	if err != nil {
		return Operand{}, err
	}
	x := win.pad(l, in[0], expr.F(in[0].DType, float64(n.Int("fill", 0))))
	return slide(l, n, win, asInt32(l, l.Readable(x)), "poolsum", expr.Sum), nil
}

func lowerImageSum(l *Lowering, n *Node, in []Operand) (Operand, error) {
	return overImage(l, n, asInt32(l, l.Readable(in[0])), expr.Sum), nil
}

// asInt32 is an operand whose elements are cast where they are read.
func asInt32(l *Lowering, x Operand) Operand {
	return l.Lazy(Type{array.Int32, x.Shape}, x.Layout, func(i []expr.Expr) expr.Expr { return expr.To(array.Int32, x.At(i...)) })
}
