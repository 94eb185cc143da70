package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

var softmaxDefs = []Def{softmaxDef(Softmax, false), softmaxDef(LogSoftmax, true)}

func softmaxDef(name string, logarithm bool) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "softmax", Traits: Traits{Rowwise: true},
		Infer: func(n *Node) (Type, error) {
			d, err := floats(n)
			softmaxAxes(n)
			n.Int(maskedAttribute, 0)
			return Type{d, n.In[0].Shape}, err
		},
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			return lowerSoftmax(l, n, in[0], logarithm)
		},
		Work:   func(n *Node) float64 { return 4 * firstOperandWork(n) },
		Detail: func(n *Node) string { return fmt.Sprintf("axes %v", axisList(softmaxAxes(n))) },
	}
}

// maskedAttribute is not in ONNX: the softmax of elements that are all minus infinity is zero rather than NaN.
const maskedAttribute = "masked"

// softmaxShift returns the number that a softmax subtracts from its elements: the largest, but a finite one if masked.
func softmaxShift(n *Node, largest expr.Expr) expr.Expr {
	if n.Int(maskedAttribute, 0) != 0 {
		return expr.MaxE(largest, expr.LowestFinite(largest.DType()))
	}
	return largest
}

// softmaxFactor returns the reciprocal of the sum of exponentials. The sum is one or more, or, if masked, may be zero.
func softmaxFactor(n *Node, sum expr.Expr) expr.Expr {
	if n.Int(maskedAttribute, 0) != 0 {
		sum = expr.MaxE(sum, like(sum, 0.5))
	}
	return expr.DivE(like(sum, 1), sum)
}

// softmaxAxes flags the axes that are normalised together: one since opset 13; all from axis on before.
func softmaxAxes(n *Node) []bool {
	rank := n.In[0].Shape.Rank()
	set := make([]bool, rank)
	if rank == 0 {
		return set
	}
	if n.Opset >= 13 {
		set[n.axis(n.Int("axis", -1), rank)] = true
		return set
	}
	for k := n.axis(n.Int("axis", 1), rank); k < rank; k++ {
		set[k] = true
	}
	return set
}

// lowerSoftmax has the stages max, exp(x-max), sum, its reciprocal or logarithm, and a multiplication (or, for the
// logarithm, x-max minus it): one division or logarithm for all elements that are normalised together.
func lowerSoftmax(l *Lowering, n *Node, x Operand, logarithm bool) Operand {
	x = l.Readable(x)
	axes := softmaxAxes(n)
	largest := l.reduceAxes("largest", expr.Maximum, x, axes, func(i, _ []expr.Expr) expr.Expr { return wide(x.At(i...)) })
	shifted := func(i []expr.Expr) expr.Expr {
		return expr.SubE(wide(x.At(i...)), softmaxShift(n, largest.At(keptOf(i, axes)...)))
	}
	exp := l.Map("exp", x.Shape, x.Layout, func(i []expr.Expr) expr.Expr { return expr.Un(expr.Exp, shifted(i)) })
	sum := l.reduceAxes("sum", expr.Sum, exp, axes, func(i, _ []expr.Expr) expr.Expr { return exp.At(i...) })
	total := l.Map("total", sum.Shape, sum.Layout, func(i []expr.Expr) expr.Expr {
		e := sum.At(i...)
		if logarithm {
			return expr.Un(expr.Log, e)
		}
		return softmaxFactor(n, e)
	})
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		t := total.At(keptOf(i, axes)...)
		if logarithm {
			return expr.To(n.Out.DType, expr.SubE(shifted(i), t))
		}
		return expr.To(n.Out.DType, expr.MulE(exp.At(i...), t))
	})
}
