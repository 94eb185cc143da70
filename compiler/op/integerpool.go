package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Internal operators, from which expansions build means of bytes.
const (
	// WindowSum is the i32 sum of the integers of up to 32 bits in each window of a pooling. The attribute "fill"
	// is the value of padding; zero if omitted.
	WindowSum = "window_sum"
	// ImageSum is the i32 sum of such integers over all spatial axes, whose extents become 1.
	ImageSum = "image_sum"
)

// integerPoolDef returns a pooling of integers with the result shape of infer.
func integerPoolDef(d Def, infer func(n *Node) (Type, error)) Def {
	d.Internal = true
	d.Infer = func(n *Node) (Type, error) {
		Get(integers(n))
		t, err := infer(n)
		t.DType = array.Int32
		return t, err
	}
	return d
}

func lowerWindowSum(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(poolWindow(n))
	x := win.pad(l, in[0], expr.F(in[0].DType, float64(n.Int("fill", 0))))
	return slide(l, n, win, asInt32(l, l.Readable(x)), "poolsum", expr.Sum, exact)
}

func lowerImageSum(l *Lowering, n *Node, in []Operand) Operand {
	return overImage(l, n, asInt32(l, l.Readable(in[0])), "globalpool", expr.Sum, wide)
}

// asInt32 returns an operand whose elements are cast where they are read.
func asInt32(l *Lowering, x Operand) Operand {
	return l.Lazy(Type{array.Int32, x.Shape}, x.Layout, func(i []expr.Expr) expr.Expr { return expr.To(array.Int32, x.At(i...)) })
}
