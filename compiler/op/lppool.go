package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
)

var lpPoolDefs = []Def{
	lpDef(poolDef("LpPool", lowerLpPool, "lppool")),
	lpDef(globalPoolDef("GlobalLpPool", lowerGlobalLpPool, "globallppool")),
}

// lpDef adds a check of the power.
func lpDef(d Def) Def {
	infer := d.Infer
	d.Infer = func(n *Node) (Type, error) {
		if p := n.Int("p", 2); p < 1 || p > math.MaxInt16 {
			return Type{}, fmt.Errorf("p %d is out of range", p)
		}
		if !n.In[0].DType.IsFloat() {
			return Type{}, fmt.Errorf("input %v is not of floating point type", n.In[0].Type)
		}
		return infer(n)
	}
	return d
}

// lowerGlobalLpPool computes that root of the sum over each image.
func lowerGlobalLpPool(l *Lowering, n *Node, in []Operand) Operand {
	x := l.Readable(in[0])
	return lpRoot(l, n, overImage(l, n, x, "lppool", expr.Sum, n.lpTerm))
}

// lowerLpPool computes the p-th root of the sum of |x|^p over each window.
func lowerLpPool(l *Lowering, n *Node, in []Operand) Operand {
	win := Get(poolWindow(n))
	x := win.pad(l, in[0], expr.Zero(in[0].DType))
	return lpRoot(l, n, slide(l, n, win, x, "lppool", expr.Sum, n.lpTerm))
}

// lpTerm returns |x|^p.
func (n *Node) lpTerm(x expr.Expr) expr.Expr {
	x = wide(x)
	switch p := n.Int("p", 2); p {
	case 1:
		return expr.Un(expr.Abs, x)
	case 2:
		return square(x)
	default:
		return expr.Bin(expr.Pow, expr.Un(expr.Abs, x), like(x, float64(p)))
	}
}

// lpRoot returns the p-th root of a sum, rounded to the result's type.
func lpRoot(l *Lowering, n *Node, acc Operand) Operand {
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		switch p := n.Int("p", 2); p {
		case 1:
		case 2:
			e = expr.Un(expr.Sqrt, e)
		default:
			e = expr.Bin(expr.Pow, e, like(e, 1/float64(p)))
		}
		return expr.To(n.Out.DType, e)
	})
}
