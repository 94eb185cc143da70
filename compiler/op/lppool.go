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
func lowerGlobalLpPool(l *Lowering, n *Node, in []Operand) (Operand, error) {
	x := l.Readable(in[0])
	acc := l.Reduce("lppool", expr.Sum, n.Out.Shape, ChannelsLast(len(x.Shape)), x.Shape[2:], func(i, r []expr.Expr) expr.Expr {
		return lpTerm(n, wide(x.At(append(append([]expr.Expr{}, i[:2]...), r...)...)))
	})
	return lpRoot(l, n, acc), nil
}

// lowerLpPool computes the p-th root of the sum of |x|^p over each window.
func lowerLpPool(l *Lowering, n *Node, in []Operand) (Operand, error) {
	win, err := poolWindow(n)
	if err != nil {
		return Operand{}, err
	}
	x := win.pad(l, in[0], expr.Zero(in[0].DType))
	acc := l.Reduce("lppool", expr.Sum, n.Out.Shape, ChannelsLast(len(x.Shape)), win.kernel, func(i, r []expr.Expr) expr.Expr {
		xi := append([]expr.Expr{}, i...)
		for k := range win.in {
			xi[2+k] = win.at(k, i[2+k], r[k])
		}
		return lpTerm(n, wide(x.At(xi...)))
	})
	return lpRoot(l, n, acc), nil
}

// lpTerm returns |x|^p.
func lpTerm(n *Node, x expr.Expr) expr.Expr {
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
