package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var lrnDefs = []Def{{
	Name: "LRN", Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "lrn", Infer: inferLRN, Lower: lowerLRN,
	Work:   func(n *Node) float64 { return firstOperandWork(n) * float64(2*n.Int("size", 1)) },
	Detail: func(n *Node) string { return fmt.Sprintf("k%d", n.Int("size", 1)) },
}}

func inferLRN(n *Node) (Type, error) {
	d := Get(floats(n))
	if size := n.Int("size", 0); size < 1 || size > 1<<16 || n.In[0].Shape.Rank() < 2 {
		return Type{}, fmt.Errorf("a window of %d channels does not fit %v", size, n.In[0].Type)
	}
	n.Float("alpha", 0)
	n.Float("beta", 0)
	n.Float("bias", 0)
	return Type{d, n.In[0].Shape}, nil
}

// lowerLRN is local response normalisation across channels (Krizhevsky et al. 2012, section 3.3): x / (bias +
// alpha/size * sum of squares over the size channels around)^beta.
func lowerLRN(l *Lowering, n *Node, in []Operand) Operand {
	x := l.Readable(in[0])
	size := n.Int("size", 1)
	before := (size - 1) / 2
	sum := l.Reduce("squares", expr.Sum, x.Shape, x.Layout, extent.Fixed(size), func(i, r []expr.Expr) expr.Expr {
		index := append([]expr.Expr{}, i...)
		index[1] = expr.SubE(expr.AddE(i[1], r[0]), expr.I(before))
		term := square(wide(x.At(index...)))
		return expr.Sel(l.inRange(index[1], x.Shape.At(1)), term, like(term, 0))
	})
	scale, bias, beta := n.Float("alpha", 1e-4)/float64(size), n.Float("bias", 1), n.Float("beta", 0.75)
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		base := linear(sum.At(i...), scale, bias)
		return expr.To(n.Out.DType, expr.DivE(wide(x.At(i...)), power(base, beta)))
	})
}

// power returns base to a known exponent; the usual ones of normalisations are roots.
func power(base expr.Expr, exponent float64) expr.Expr {
	root := func(e expr.Expr) expr.Expr { return expr.Un(expr.Sqrt, e) }
	switch exponent {
	case 0.5:
		return root(base)
	case 0.75:
		return expr.MulE(root(base), root(root(base)))
	case 1:
		return base
	}
	return expr.Bin(expr.Pow, base, like(base, exponent))
}
